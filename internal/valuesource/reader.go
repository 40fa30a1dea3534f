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
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/lru"
	"github.com/cluster-chandler/chandler/internal/source/object"
	"github.com/cluster-chandler/chandler/internal/source/reference"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// cacheSize is in objects; each is a values file, mostly some kilobytes.
const cacheSize = 4096

// Reader reads ConfigMaps and Secrets. Only their metadata is watched, to save memory. The content of a version is read
// once.
//
// Key: the object and its version.
// Bound: cacheSize objects.
// Lost with it: each object is read once more.
type Reader struct {
	objects  *object.Reader
	contents *lru.Cache[reference.Object, object.Contents]
}

// NewReader returns a reader of objects whose metadata is in the cache, and whose content the API server has.
func NewReader(metadata, live client.Reader) *Reader {
	return &Reader{
		objects:  object.NewReader(live, metadata),
		contents: lru.New[reference.Object](cacheSize, lru.One[object.Contents]),
	}
}

// Data returns an object's content; false if there is no such object.
func (r *Reader) Data(ctx context.Context, kind string, key client.ObjectKey) (map[string][]byte, bool, error) {
	found, isThere, err := r.content(ctx, reference.Object{Kind: kind, Namespace: key.Namespace, Name: key.Name})
	return found.Data, isThere, err
}

func (r *Reader) content(ctx context.Context, o reference.Object) (object.Contents, bool, error) {
	found, _ := r.contents.Get(o)
	version, err := r.objects.Cached(ctx, o)
	if err == nil && found.Version != version {
		if found, err = r.objects.All(ctx, o); err == nil {
			r.contents.Put(o, found)
		}
	}
	return isThere(o, found, err)
}

// isThere returns what was read; false if there is no such object.
func isThere(o reference.Object, found object.Contents, err error) (object.Contents, bool, error) {
	switch {
	case err == nil:
		return found, true, nil
	case apierrors.IsNotFound(err):
		return object.Contents{}, false, nil
	}
	return object.Contents{}, false, fmt.Errorf("reading %s %s/%s: %w", o.Kind, o.Namespace, o.Name, err)
}

// Digest returns the digest of the values that a reference means, "" if they aren't there. Readers of a digest can't try
// out what a Secret may have: the key of the hash is the UID of the Secret, which nobody knows who can't read it. A ConfigMap
// has no such key, so equal values have equal digests in each management cluster.
func (r *Reader) Digest(ctx context.Context, namespace string, ref addonsv1.ValuesReference) (string, error) {
	found, _, err := r.content(ctx, objectOf(namespace, ref))
	return digestOf(ref, found), err
}

// DigestNow is like Digest, and asks the API server.
func (r *Reader) DigestNow(ctx context.Context, namespace string, ref addonsv1.ValuesReference) (string, error) {
	o := objectOf(namespace, ref)
	found, err := r.objects.All(ctx, o)
	found, _, err = isThere(o, found, err)
	return digestOf(ref, found), err
}

func objectOf(namespace string, ref addonsv1.ValuesReference) reference.Object {
	return reference.Object{Kind: ref.Kind, Namespace: namespace, Name: ref.Name}
}

// digestOf returns 32 hex digits of an HMAC-SHA256 over the reference's name and the value.
func digestOf(ref addonsv1.ValuesReference, found object.Contents) string {
	value, isThere := found.Data[stack.ValuesKey(ref)]
	if !isThere {
		return ""
	}
	secret := ""
	if ref.Kind == "Secret" {
		secret = string(found.UID)
	}
	sum := hmac.New(sha256.New, []byte(secret))
	_, _ = sum.Write([]byte(stack.ValuesName(ref) + "\n")) // it never fails
	_, _ = sum.Write(value)
	return hex.EncodeToString(sum.Sum(nil)[:16])
}
