// SPDX-License-Identifier: Apache-2.0

// Package object reads what ConfigMaps and Secrets of the management cluster hold.
package object

import (
	"context"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/source/reference"
)

// Reader of ConfigMaps and Secrets.
type Reader struct {
	client   client.Reader
	metadata client.Reader
}

// Contents are all that an object holds.
type Contents struct {
	UID types.UID
	// Version of the object that this was read at; see [Reader.Version].
	Version string
	// Data by key: of ConfigMaps, data and binaryData.
	Data   map[string][]byte
	binary map[string][]byte // of a ConfigMap
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
	version, _ := r.Cached(ctx, key)
	return version
}

// Cached is like Version, with the error of the cache, which there has to be.
func (r *Reader) Cached(ctx context.Context, key reference.Object) (version string, err error) {
	var object metav1.PartialObjectMetadata
	object.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(key.Kind))
	if err := r.metadata.Get(ctx, nameOf(key), &object); err != nil {
		return "", err
	}
	return versionOf(&object), nil
}

func nameOf(key reference.Object) client.ObjectKey {
	return client.ObjectKey{Namespace: key.Namespace, Name: key.Name}
}

func versionOf(object client.Object) string {
	return string(object.GetUID()) + "/" + object.GetResourceVersion()
}

// All gets all that a ConfigMap or Secret holds from the API server. The error is the client's.
func (r *Reader) All(ctx context.Context, key reference.Object) (Contents, error) {
	if key.Kind == reference.KindSecret {
		secret := &corev1.Secret{}
		err := r.client.Get(ctx, nameOf(key), secret)
		return Contents{UID: secret.UID, Version: versionOf(secret), Data: secret.Data}, err
	}
	configMap := &corev1.ConfigMap{}
	err := r.client.Get(ctx, nameOf(key), configMap)
	data := make(map[string][]byte, len(configMap.Data)+len(configMap.BinaryData))
	maps.Copy(data, configMap.BinaryData)
	for name, text := range configMap.Data { // a key is in one of both only
		data[name] = []byte(text)
	}
	return Contents{UID: configMap.UID, Version: versionOf(configMap), Data: data, binary: configMap.BinaryData}, err
}

// Read gets the object from the API server. Errors don't tell which keys there are: they may be
// secret.
func (r *Reader) Read(ctx context.Context, key reference.Object) (Content, error) {
	all, err := r.need(ctx, key)
	if err != nil {
		return Content{}, err
	}
	data, found := all.Data[key.Key]
	isText, field := false, "data"
	if key.Kind != reference.KindSecret {
		_, isBinary := all.binary[key.Key]
		isText, field = !isBinary, "binaryData, or to data if it is text"
	}
	if !found {
		return Content{}, failure.NotPublished("there is no such key; add it to %s, or set the right key in the reference", field)
	}
	return Content{Version: all.Version, Data: data, Text: isText}, nil
}

// Secret gets the data of a Secret from the API server.
func (r *Reader) Secret(ctx context.Context, key reference.Object) (map[string][]byte, error) {
	all, err := r.need(ctx, key)
	return all.Data, err
}

// need is All for an object that a source needs: its errors say that it isn't there, or can't be asked for.
func (r *Reader) need(ctx context.Context, key reference.Object) (Contents, error) {
	all, err := r.All(ctx, key)
	if apierrors.IsNotFound(err) {
		return Contents{}, failure.NotPublished("there is no such %s; create it in this namespace", key.Kind)
	}
	if err != nil {
		return Contents{}, failure.New(failure.SourceUnavailable, "reading it: %w", err)
	}
	return all, nil
}
