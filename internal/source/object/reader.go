// SPDX-License-Identifier: Apache-2.0

// Package object reads what ConfigMaps and Secrets of the management cluster hold.
package object

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/source/reference"
)

// Reader of ConfigMaps and Secrets.
type Reader struct {
	client   client.Reader
	metadata client.Reader
}

// Content is what an object holds at a key.
type Content struct {
	// Version of the object that this was read at; see [Reader.Version].
	Version string
	Data    []byte
	// Text is set if it is in a ConfigMap's data, where no bytes can be.
	Text bool
}

// NewReader reads with the client, which must not cache, and takes the versions of objects
// from the metadata cache: nil if there is none.
func NewReader(client, metadata client.Reader) *Reader {
	return &Reader{client: client, metadata: metadata}
}

// Version returns UID and resourceVersion of the object as the metadata cache knows them, "" if it
// doesn't. Not known isn't missing: the cache may lag, or leave objects out.
func (r *Reader) Version(ctx context.Context, key reference.Object) string {
	if r.metadata == nil {
		return ""
	}
	var object metav1.PartialObjectMetadata
	object.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(key.Kind))
	if err := r.metadata.Get(ctx, client.ObjectKey{Namespace: key.Namespace, Name: key.Name}, &object); err != nil {
		return ""
	}
	return versionOf(&object)
}

func versionOf(object client.Object) string {
	return string(object.GetUID()) + "/" + object.GetResourceVersion()
}

// Read gets the object from the API server. Errors don't tell which keys there are: they may be
// secret.
func (r *Reader) Read(ctx context.Context, key reference.Object) (Content, error) {
	if key.Kind == reference.KindSecret {
		secret, err := r.Secret(ctx, key)
		if err != nil {
			return Content{}, err
		}
		data, found := secret.Data[key.Key]
		return Content{Version: versionOf(secret), Data: data}, missing(found, "data")
	}
	var configMap corev1.ConfigMap
	if err := r.get(ctx, key, &configMap); err != nil {
		return Content{}, err
	}
	if text, found := configMap.Data[key.Key]; found { // a key is in one of both only
		return Content{Version: versionOf(&configMap), Data: []byte(text), Text: true}, nil
	}
	data, found := configMap.BinaryData[key.Key]
	return Content{Version: versionOf(&configMap), Data: data}, missing(found, "binaryData, or to data if it is text")
}

func missing(found bool, field string) error {
	if found {
		return nil
	}
	return failure.NotPublished("there is no such key; add it to %s, or set the right key in the reference", field)
}

// Secret gets all of a Secret from the API server.
func (r *Reader) Secret(ctx context.Context, key reference.Object) (*corev1.Secret, error) {
	var secret corev1.Secret
	if err := r.get(ctx, key, &secret); err != nil {
		return nil, err
	}
	return &secret, nil
}

func (r *Reader) get(ctx context.Context, key reference.Object, object client.Object) error {
	err := r.client.Get(ctx, client.ObjectKey{Namespace: key.Namespace, Name: key.Name}, object)
	if apierrors.IsNotFound(err) {
		return failure.NotPublished("there is no such %s; create it in this namespace", key.Kind)
	}
	if err != nil {
		return failure.New(failure.SourceUnavailable, "reading it: %w", err)
	}
	return nil
}
