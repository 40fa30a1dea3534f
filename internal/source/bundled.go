// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/source/reference"
)

// bundled is the origin of charts, and other artifacts, in bundles.
type bundled struct{ sources *Sources }

func (b bundled) resolve(ctx context.Context, ref reference.Reference) (string, error) {
	bundle, err := b.sources.OpenBundle(ctx, ref.Namespace, ref.Bundle)
	if err != nil {
		return "", err
	}
	key := bundle.Digest + " " + ref.Chart.Path + ref.Kind.Suffix()
	if digest, known := b.sources.inBundles.Get(key); known {
		return digest, nil
	}
	got, err := bundle.content(ref.Chart.Path, ref.Kind)
	if err != nil {
		return "", err
	}
	digest := got.Digest()
	b.sources.inBundles.Put(key, digest)
	return digest, nil
}

func (b bundled) fetch(ctx context.Context, ref reference.Reference, _ string) (artifact.Content, error) {
	bundle, err := b.sources.OpenBundle(ctx, ref.Namespace, ref.Bundle)
	if err != nil {
		return artifact.Content{}, err
	}
	return bundle.content(ref.Chart.Path, ref.Kind)
}
