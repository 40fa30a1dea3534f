// SPDX-License-Identifier: Apache-2.0

// Package valuesource reads the ConfigMaps and Secrets of the management cluster that add-ons have values from.
package valuesource

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/fleet/budget"
	"github.com/cluster-chandler/chandler/internal/source/object"
	"github.com/cluster-chandler/chandler/internal/source/reference"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// cacheSize bounds the values that are kept, in bytes; those of a file are mostly some kilobytes.
const cacheSize = 64 << 20

// Reader reads ConfigMaps and Secrets. Only their metadata is watched, to save memory. A value of a version is read once.
//
// Key: the object, and its key.
// Bound: cacheSize bytes, and the budget.
// Lost with it: each object is read once more.
type Reader struct {
	objects *object.Reader
	values  *budget.Cache[reference.Object, Value]
}

// Value is what an object has at a key.
type Value struct {
	Data []byte
	// IsThere says that the object has the key.
	IsThere bool

	uid     types.UID
	version string // of the object
}

// NewReader returns a reader of objects whose metadata is in the cache, and whose content the API server has.
func NewReader(metadata, live client.Reader, memory *budget.Budget) *Reader {
	return &Reader{
		objects: object.NewReader(live, metadata),
		values:  budget.NewCache[reference.Object](memory, cacheSize, func(v Value) int64 { return int64(len(v.Data)) + 256 }),
	}
}

// Value returns the value that a reference means; false if there is no such object.
func (r *Reader) Value(ctx context.Context, namespace string, ref addonsv1.ValuesReference) (Value, bool, error) {
	o := objectOf(namespace, ref)
	known, _ := r.values.Get(o)
	version, err := r.objects.Cached(ctx, o)
	if apierrors.IsNotFound(err) {
		r.values.Remove(o)
	}
	if err != nil || known.version == version {
		return isThere(o, known, err)
	}
	now, found, err := r.valueNow(ctx, o)
	if found {
		r.values.Put(budget.Tenant{Namespace: namespace}, o, now)
	}
	return now, found, err
}

// valueNow asks the API server.
func (r *Reader) valueNow(ctx context.Context, o reference.Object) (Value, bool, error) {
	found, err := r.objects.All(ctx, o)
	data, hasKey := found.Data[o.Key]
	return isThere(o, Value{Data: data, IsThere: hasKey, uid: found.UID, version: found.Version}, err)
}

// isThere returns what was read; false if there is no such object.
func isThere(o reference.Object, found Value, err error) (Value, bool, error) {
	switch {
	case err == nil:
		return found, true, nil
	case apierrors.IsNotFound(err):
		return Value{}, false, nil
	}
	return Value{}, false, fmt.Errorf("reading %s %s/%s: %w", o.Kind, o.Namespace, o.Name, err)
}

// Digest returns the digest of the values that a reference means, "" if they aren't there. Readers of a digest can't try
// out what a Secret may have: the key of the hash is the UID of the Secret, which nobody knows who can't read it. A ConfigMap
// has no such key, so equal values have equal digests in each management cluster.
func (r *Reader) Digest(ctx context.Context, namespace string, ref addonsv1.ValuesReference) (string, error) {
	found, _, err := r.Value(ctx, namespace, ref)
	return digestOf(ref, found), err
}

// DigestNow is like Digest, and asks the API server.
func (r *Reader) DigestNow(ctx context.Context, namespace string, ref addonsv1.ValuesReference) (string, error) {
	found, _, err := r.valueNow(ctx, objectOf(namespace, ref))
	return digestOf(ref, found), err
}

func objectOf(namespace string, ref addonsv1.ValuesReference) reference.Object {
	return reference.Object{Kind: ref.Kind, Namespace: namespace, Name: ref.Name, Key: stack.ValuesKey(ref)}
}

// digestOf returns 32 hex digits of an HMAC-SHA256 over the reference's name and the value.
func digestOf(ref addonsv1.ValuesReference, found Value) string {
	if !found.IsThere {
		return ""
	}
	secret := ""
	if ref.Kind == "Secret" {
		secret = string(found.uid)
	}
	sum := hmac.New(sha256.New, []byte(secret))
	_, _ = sum.Write([]byte(stack.ValuesName(ref) + "\n")) // it never fails
	_, _ = sum.Write(found.Data)
	return hex.EncodeToString(sum.Sum(nil)[:16])
}
