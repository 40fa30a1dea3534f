// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/source/reference"
	"github.com/cluster-chandler/chandler/internal/source/tree"
)

// Watch calls notify with each chart.path that was resolved before and has changed since;
// see [tree.Tree.Watch]. Without an artifact root there is nothing to watch, and it only
// waits for the end of ctx.
func (s *Sources) Watch(ctx context.Context, notify func(path string)) error {
	if s.local == nil {
		<-ctx.Done()
		return nil
	}
	return s.local.Watch(ctx, notify)
}

// artifactRoot is the origin of what is in a directory tree of this machine.
type artifactRoot struct{ *tree.Tree }

func (o artifactRoot) resolve(_ context.Context, ref reference.Reference) (string, error) {
	return o.Resolve(ref.Chart.Path, ref.Kind)
}

func (o artifactRoot) fetch(_ context.Context, ref reference.Reference, _ string) (artifact.Content, error) {
	return o.Fetch(ref.Chart.Path, ref.Kind)
}
