// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"

	"golang.org/x/sync/singleflight"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/source/lru"
	"github.com/cluster-chandler/chandler/internal/source/object"
	"github.com/cluster-chandler/chandler/internal/source/reference"
)

// objects is the origin of charts in ConfigMaps and Secrets.
//
// What a version of an object holds never changes, so a digest is remembered with
// the version (UID and resourceVersion) it was read at, and read anew when the
// metadata cache tells another. The cache may lag behind: then the object is read
// once too often, never once too rarely, and its event comes later.
type objects struct {
	*object.Reader
	known   *lru.Cache[reference.Object, resolved]
	flights singleflight.Group
}

// resolved is what an object said of its chart at a version.
type resolved struct {
	version string
	digest  string
	text    bool  // it is in a ConfigMap's data
	err     error // of the content, not of the request
}

func newObjects(reader *object.Reader) *objects {
	return &objects{Reader: reader, known: lru.New[reference.Object](remembered, lru.One[resolved])}
}

func (o *objects) resolve(ctx context.Context, ref reference.Reference) (string, error) {
	found, err := o.look(ctx, ref.Object())
	if err != nil {
		return "", err
	}
	if found.text {
		found.err = acceptsText(ref)
	}
	return found.digest, found.err
}

// look finds out what the object says of its chart now.
func (o *objects) look(ctx context.Context, key reference.Object) (resolved, error) {
	version := o.Version(ctx, key)
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
func (o *objects) ask(ctx context.Context, key reference.Object) (resolved, error) {
	read, err := o.Read(ctx, key)
	if err != nil {
		return resolved{}, err
	}
	found := resolved{version: read.Version, text: read.Text}
	if read.Missing {
		found.err = missingChart(key)
	} else {
		found.digest = artifact.Content{Archive: read.Data}.Digest()
	}
	o.known.Put(key, found)
	return found, nil
}

func (o *objects) fetch(ctx context.Context, ref reference.Reference, _ string) (artifact.Content, error) {
	read, err := o.Read(ctx, ref.Object())
	switch {
	case err != nil:
	case read.Missing:
		err = missingChart(ref.Object())
	case read.Text:
		err = acceptsText(ref)
	}
	return artifact.Content{Archive: read.Data}, err
}

// missingChart is the error of a key that isn't there.
func missingChart(key reference.Object) error {
	if key.Kind == reference.KindSecret {
		return object.MissingKey("data")
	}
	return object.MissingKey("binaryData (manifests may be in data, too)")
}

// acceptsText tells whether a ConfigMap's data may have what the reference expects.
func acceptsText(r reference.Reference) error {
	if r.Kind == artifact.KindManifests {
		return nil
	}
	key := r.Object()
	return failure.New(failure.ArtifactInvalid, "the key is in data, which is text and can't hold an archive; put it in binaryData, as "+
		"`kubectl create configmap %s --from-file=%s` does", key.Name, key.Key)
}
