// SPDX-License-Identifier: Apache-2.0

// Package valuesource reads the ConfigMaps and Secrets of the management cluster that add-ons have values from.
package valuesource

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/fleet/budget"
	"github.com/cluster-chandler/chandler/internal/source/object"
	"github.com/cluster-chandler/chandler/internal/source/reference"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// cacheBytes bounds the values that are kept. A values file mostly has some kilobytes.
const cacheBytes = 64 << 20

// Reader reads ConfigMaps and Secrets. Only their metadata is watched, to save memory. A key that an add-on names is read
// once for each version of its object.
//
// Key: the object.
// Bound: cacheBytes, and the budget; until the object is changed or deleted.
// Lost with it: each key is read once more.
type Reader struct {
	objects *object.Reader
	kept    *budget.Cache[reference.Object, content]
}

// content is what is kept of an object: the keys that were asked for.
type content struct {
	version string
	values  map[string]Value
}

// Value is what an object has at a key.
type Value struct {
	Text []byte
	// IsThere says that the object has the key, and HasObject that there is the object.
	IsThere, HasObject bool
	uid                types.UID
}

// NewReader returns a reader of objects whose metadata is in the cache, and whose content the API server has. What is kept
// counts as memory.
func NewReader(metadata, live client.Reader, memory *budget.Budget) *Reader {
	return &Reader{
		objects: object.NewReader(live, metadata),
		kept: budget.NewCache[reference.Object](memory, cacheBytes, func(c content) (bytes int64) {
			for key, value := range c.values {
				bytes += int64(len(key) + len(value.Text) + 128)
			}
			return bytes
		}),
	}
}

// Value returns what an object has at a key.
func (r *Reader) Value(ctx context.Context, o reference.Object) (Value, error) {
	version, err := r.objects.Cached(ctx, o)
	if err != nil {
		r.kept.Remove(objectOf(o))
		return read(o, object.Contents{}, err)
	}
	kept, _ := r.kept.Get(objectOf(o))
	if value, known := kept.values[o.Key]; known && kept.version == version {
		return value, nil
	}
	all, err := r.objects.All(ctx, o)
	value, err := read(o, all, err)
	if err == nil && value.HasObject {
		r.kept.Change(budget.Tenant{Namespace: o.Namespace}, objectOf(o), func(c *content) {
			values := map[string]Value{o.Key: value}
			if c.version == all.Version {
				maps.Copy(values, c.values) // others read the previous ones
			}
			*c = content{all.Version, values}
		})
	}
	return value, err
}

// Forget drops what is kept of an object that was changed or deleted.
func (r *Reader) Forget(kind string, key client.ObjectKey) {
	r.kept.Remove(reference.Object{Kind: kind, Namespace: key.Namespace, Name: key.Name})
}

// objectOf returns an object without a key.
func objectOf(o reference.Object) reference.Object {
	o.Key = ""
	return o
}

// read returns what was read of an object.
func read(o reference.Object, all object.Contents, err error) (Value, error) {
	text, isThere := all.Data[o.Key]
	switch {
	case err == nil:
		return Value{text, isThere, true, all.UID}, nil
	case apierrors.IsNotFound(err):
		return Value{}, nil
	}
	return Value{}, fmt.Errorf("reading %s %s/%s: %w", o.Kind, o.Namespace, o.Name, err)
}

// Digest returns the digest of the values that a reference means, "" if they aren't there. Readers of a digest can't try
// out what a Secret may have: the key of the hash is the UID of the Secret, which nobody knows who can't read it. A ConfigMap
// has no such key, so equal values have equal digests in each management cluster.
func (r *Reader) Digest(ctx context.Context, namespace string, ref addonsv1.ValuesReference) (string, error) {
	is, err := r.Value(ctx, Named(namespace, ref))
	return digestOf(ref, is), err
}

// DigestNow is like Digest, and asks the API server.
func (r *Reader) DigestNow(ctx context.Context, namespace string, ref addonsv1.ValuesReference) (string, error) {
	o := Named(namespace, ref)
	all, err := r.objects.All(ctx, o)
	is, err := read(o, all, err)
	return digestOf(ref, is), err
}

// Named returns the key of an object of a namespace that a reference names.
func Named(namespace string, ref addonsv1.ValuesReference) reference.Object {
	return reference.Object{Kind: ref.Kind, Namespace: namespace, Name: ref.Name, Key: stack.ValuesKey(ref)}
}

// digestOf returns 32 hex digits of an HMAC-SHA256 over the reference's name and the value.
func digestOf(ref addonsv1.ValuesReference, is Value) string {
	if !is.IsThere {
		return ""
	}
	secret := ""
	if ref.Kind == "Secret" {
		secret = string(is.uid)
	}
	sum := hmac.New(sha256.New, []byte(secret))
	_, _ = sum.Write([]byte(stack.ValuesName(ref) + "\n")) // it never fails
	_, _ = sum.Write(is.Text)
	return hex.EncodeToString(sum.Sum(nil)[:16])
}
