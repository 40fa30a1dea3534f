// SPDX-License-Identifier: Apache-2.0

package valuesource

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/source/object"
	"github.com/cluster-chandler/chandler/internal/source/reference"
	"github.com/cluster-chandler/chandler/internal/stack"
)

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
