// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// objectCacheSize is in objects; each is a values file, mostly some kilobytes.
const objectCacheSize = 4096

// objectReader reads ConfigMaps and Secrets of the management cluster. Only
// their metadata is watched: the contents of all Secrets of a namespace have no
// place in memory. The content of a version that was read once is kept.
type objectReader struct {
	metadata client.Reader // the manager's cache
	live     client.Reader
	contents *lru.Cache
}

type objectContent struct {
	uid, resourceVersion string
	data                 map[string][]byte
}

func newObjectReader(metadata, live client.Reader) *objectReader {
	return &objectReader{metadata: metadata, live: live, contents: lru.New(objectCacheSize)}
}

// data returns an object's content; false if there is no such object.
func (r *objectReader) data(ctx context.Context, o object) (map[string][]byte, bool, error) {
	meta := &metav1.PartialObjectMetadata{}
	meta.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(o.kind))
	content, err := objectContent{}, r.metadata.Get(ctx, o.key, meta)
	if err == nil {
		if known, ok := r.contents.Get(o); ok {
			content = known.(objectContent)
		}
		if content.uid == string(meta.UID) && content.resourceVersion == meta.ResourceVersion {
			return content.data, true, nil
		}
		content, err = r.read(ctx, o)
	}
	if err != nil {
		if err = client.IgnoreNotFound(err); err != nil {
			return nil, false, fmt.Errorf("reading %s %s: %w", o.kind, o.key, err)
		}
		return nil, false, nil
	}
	r.contents.Add(o, content)
	return content.data, true, nil
}

func (r *objectReader) read(ctx context.Context, o object) (objectContent, error) {
	if o.kind == "Secret" {
		secret := &corev1.Secret{}
		if err := r.live.Get(ctx, o.key, secret); err != nil {
			return objectContent{}, err
		}
		return objectContent{string(secret.UID), secret.ResourceVersion, secret.Data}, nil
	}
	configMap := &corev1.ConfigMap{}
	if err := r.live.Get(ctx, o.key, configMap); err != nil {
		return objectContent{}, err
	}
	data := make(map[string][]byte, len(configMap.Data)+len(configMap.BinaryData))
	for key, value := range configMap.Data {
		data[key] = []byte(value)
	}
	for key, value := range configMap.BinaryData {
		data[key] = value
	}
	return objectContent{string(configMap.UID), configMap.ResourceVersion, data}, nil
}
