// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"fmt"

	"golang.org/x/sync/singleflight"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-chandler/chandler/internal/source/artifact"
	"github.com/cluster-chandler/chandler/internal/source/failure"
	"github.com/cluster-chandler/chandler/internal/source/lru"
)

// objects is the origin of charts in ConfigMaps and Secrets.
//
// What a version of an object holds never changes, so a digest is remembered with
// the version (UID and resourceVersion) it was read at, and read anew when the
// metadata cache tells another. The cache may lag behind: then the object is read
// once too often, never once too rarely, and its event comes later.
type objects struct {
	client   client.Reader
	metadata client.Reader // nil: no version is known before the object is read
	known    *lru.Cache[objectKey, resolved]
	flights  singleflight.Group
}

// resolved is what an object said of its chart at a version.
type resolved struct {
	version string
	digest  string
	text    bool  // it is in a ConfigMap's data
	err     error // of the content, not of the request
}

// objectContent is a chart as an object holds it.
type objectContent struct {
	version string
	archive []byte
	text    bool  // it is in a ConfigMap's data
	err     error // why the object has nothing at the key
}

func newObjects(reader, metadata client.Reader) *objects {
	return &objects{client: reader, metadata: metadata, known: lru.New[objectKey](remembered, lru.One[resolved])}
}

func (o *objects) resolve(ctx context.Context, ref Reference) (string, error) {
	found, err := o.look(ctx, ref.object())
	if err != nil {
		return "", err
	}
	if found.text {
		found.err = ref.acceptsText()
	}
	return found.digest, found.err
}

// look finds out what the object says of its chart now.
func (o *objects) look(ctx context.Context, key objectKey) (resolved, error) {
	version := o.version(ctx, key)
	if version == "" {
		// A read that others began earlier may have missed the change that this call is about.
		return o.ask(ctx, key)
	}
	if found, known := o.known.Get(key); known && found.version == version {
		return found, nil
	}
	results := o.flights.DoChan(key.String()+" "+version, func() (any, error) {
		if found, known := o.known.Get(key); known && found.version == version { // by a flight that just ended
			return found, nil
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), fetchTimeout)
		defer cancel()
		return o.ask(ctx, key)
	})
	select {
	case <-ctx.Done():
		return resolved{}, ctx.Err()
	case result := <-results:
		if result.Err != nil {
			return resolved{}, result.Err
		}
		return result.Val.(resolved), nil
	}
}

// ask reads the object and remembers what it says.
func (o *objects) ask(ctx context.Context, key objectKey) (resolved, error) {
	read, err := o.read(ctx, key)
	if err != nil {
		return resolved{}, err
	}
	found := resolved{version: read.version, text: read.text, err: read.err}
	if read.err == nil {
		found.digest = artifact.Content{Archive: read.archive}.Digest()
	}
	o.known.Put(key, found)
	return found, nil
}

func (o *objects) fetch(ctx context.Context, ref Reference, _ string) (artifact.Content, error) {
	read, err := o.read(ctx, ref.object())
	if err != nil {
		return artifact.Content{}, err
	}
	if read.text {
		read.err = ref.acceptsText()
	}
	return artifact.Content{Archive: read.archive}, read.err
}

// acceptsText tells whether a ConfigMap's data may have what the reference expects.
func (r Reference) acceptsText() error {
	if r.Kind == artifact.KindManifests {
		return nil
	}
	key := r.object()
	return failure.New(failure.ArtifactInvalid, "the key is in data, which is text and can't hold an archive; put it in binaryData, as "+
		"`kubectl create configmap %s --from-file=%s` does", key.name, key.key)
}

// version of the object as the metadata cache knows it, "" if it doesn't. Not
// known isn't missing: the cache may lag, or leave objects out.
func (o *objects) version(ctx context.Context, key objectKey) string {
	if o.metadata == nil {
		return ""
	}
	var object metav1.PartialObjectMetadata
	object.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(key.kind))
	if err := o.metadata.Get(ctx, client.ObjectKey{Namespace: key.namespace, Name: key.name}, &object); err != nil {
		return ""
	}
	return versionOf(&object)
}

func versionOf(object client.Object) string {
	return string(object.GetUID()) + "/" + object.GetResourceVersion()
}

// read gets the object from the API server. A missing object is an error, a
// missing key is in the result: it stays so until the object changes.
func (o *objects) read(ctx context.Context, key objectKey) (objectContent, error) {
	if key.kind == kindSecret {
		var secret corev1.Secret
		if err := o.get(ctx, key, &secret); err != nil {
			return objectContent{}, err
		}
		archive, found := secret.Data[key.key]
		return objectContent{version: versionOf(&secret), archive: archive, err: key.missing(found, "data")}, nil
	}
	var configMap corev1.ConfigMap
	if err := o.get(ctx, key, &configMap); err != nil {
		return objectContent{}, err
	}
	if text, found := configMap.Data[key.key]; found {
		return objectContent{version: versionOf(&configMap), archive: []byte(text), text: true}, nil
	}
	archive, found := configMap.BinaryData[key.key]
	return objectContent{version: versionOf(&configMap), archive: archive, err: key.missing(found, "binaryData (manifests may be in data, too)")}, nil
}

// missing is the error of a key that wasn't found. It doesn't tell which keys there are: they may be secret.
func (k objectKey) missing(found bool, field string) error {
	if found {
		return nil
	}
	missing := failure.New(failure.ArtifactNotFound, "there is no such key; add it to %s, or set the right key in the reference", field)
	missing.Wait = true
	return missing
}

func (o *objects) get(ctx context.Context, key objectKey, object client.Object) error {
	err := o.client.Get(ctx, client.ObjectKey{Namespace: key.namespace, Name: key.name}, object)
	if apierrors.IsNotFound(err) {
		missing := failure.New(failure.ArtifactNotFound, "there is no such %s; create it in this namespace", key.kind)
		missing.Wait = true
		return missing
	}
	if err != nil {
		return fmt.Errorf("reading it: %w", err)
	}
	return nil
}
