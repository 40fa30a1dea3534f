// SPDX-License-Identifier: Apache-2.0

// Package valuesource reads the ConfigMaps and Secrets of the management cluster that add-ons have values from.
package valuesource

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-chandler/chandler/internal/lru"
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
	metadata client.Reader // the manager's cache
	live     client.Reader
	contents *lru.Cache[object, content]
}

type object struct {
	kind string
	key  client.ObjectKey
}

type content struct {
	uid, resourceVersion string
	data                 map[string][]byte
}

// NewReader returns a reader of objects whose metadata is in the cache, and whose content the API server has.
func NewReader(metadata, live client.Reader) *Reader {
	return &Reader{metadata: metadata, live: live, contents: lru.New[object](cacheSize, lru.One[content])}
}

// Data returns an object's content; false if there is no such object.
func (r *Reader) Data(ctx context.Context, kind string, key client.ObjectKey) (map[string][]byte, bool, error) {
	found, isThere, err := r.content(ctx, object{kind, key})
	return found.data, isThere, err
}

func (r *Reader) content(ctx context.Context, o object) (content, bool, error) {
	metadata := &metav1.PartialObjectMetadata{}
	metadata.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(o.kind))
	found, err := content{}, r.metadata.Get(ctx, o.key, metadata)
	if err == nil {
		if found, _ = r.contents.Get(o); found.uid == string(metadata.UID) && found.resourceVersion == metadata.ResourceVersion {
			return found, true, nil
		}
		found, err = r.read(ctx, o)
	}
	if err == nil {
		r.contents.Put(o, found)
	}
	return isThere(o, found, err)
}

// isThere returns what was read; false if there is no such object.
func isThere(o object, found content, err error) (content, bool, error) {
	if client.IgnoreNotFound(err) != nil {
		return content{}, false, fmt.Errorf("reading %s %s: %w", o.kind, o.key, err)
	}
	return found, err == nil, nil
}

func (r *Reader) read(ctx context.Context, o object) (content, error) {
	if o.kind == "Secret" {
		secret := &corev1.Secret{}
		if err := r.live.Get(ctx, o.key, secret); err != nil {
			return content{}, err
		}
		return content{string(secret.UID), secret.ResourceVersion, secret.Data}, nil
	}
	configMap := &corev1.ConfigMap{}
	if err := r.live.Get(ctx, o.key, configMap); err != nil {
		return content{}, err
	}
	data := make(map[string][]byte, len(configMap.Data)+len(configMap.BinaryData))
	for key, value := range configMap.Data {
		data[key] = []byte(value)
	}
	for key, value := range configMap.BinaryData {
		data[key] = value
	}
	return content{string(configMap.UID), configMap.ResourceVersion, data}, nil
}
