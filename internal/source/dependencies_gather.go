// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/source/dependency"
	"github.com/cluster-chandler/chandler/internal/source/guest"
	"github.com/cluster-chandler/chandler/internal/source/reference"
)

// askedAtOnce is how many dependencies of one chart are fetched at the same time.
const askedAtOnce = 8

// gatherer fetches what one chart misses, each dependency as if an object referred to
// it: so with the same limits and caches, one download for all, and the same patience.
// It holds no place to unpack while it waits.
type gatherer struct {
	*Sources
	root reference.Reference // whose credentials are used
	left atomic.Int64
}

// level is a chart whose dependencies are fetched.
type level struct {
	digest    string   // of the chart
	directory string   // that it belongs in; "" for the root
	above     []string // digests of the charts that depend on it, its own included
}

// gather returns the dependencies in the order that Chart.yaml has them, each followed
// by its own. Of several errors it is always the same that is told.
func (g *gatherer) gather(ctx context.Context, at level, wants []dependency.Want) ([]dependency.Part, error) {
	if g.left.Add(-int64(len(wants))) < 0 {
		return nil, dependency.TooMany()
	}
	parts, failed := make([][]dependency.Part, len(wants)), make([]error, len(wants))
	var group errgroup.Group
	group.SetLimit(askedAtOnce)
	for i, w := range wants {
		group.Go(func() error {
			parts[i], failed[i] = g.one(ctx, at, w)
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	if err := worst(failed); err != nil {
		return nil, err
	}
	var all []dependency.Part
	for _, some := range parts {
		all = append(all, some...)
	}
	return all, nil
}

// worst is the first error that won't go away by itself, or else the first one.
func worst(failed []error) (first error) {
	for _, err := range failed {
		var known *failure.Error
		if err != nil && errors.As(err, &known) && !known.Wait {
			return err
		}
		if first == nil {
			first = err
		}
	}
	return first
}

// one fetches a dependency, and what it wants in turn.
func (g *gatherer) one(ctx context.Context, at level, w dependency.Want) ([]dependency.Part, error) {
	ref, err := g.root.Dependency(w)
	if err != nil {
		return nil, w.Refused(err)
	}
	w.Subject, w.Keys = ref.Subject(), guest.KeysFor(ref)
	found, err := g.fetchOne(ctx, at.digest, ref)
	var elsewhere reference.MovedToRegistry
	if errors.As(err, &elsewhere) {
		found, err = g.fetchElsewhere(ctx, at.digest, w, ref, elsewhere)
	}
	if err != nil {
		return nil, w.Refused(err)
	}
	if err := w.Is(found.artifact.Files); err != nil {
		return nil, w.Refused(err)
	}
	directory := at.directory + w.Within + w.DirectoryOf(w.Version)
	parts := []dependency.Part{{Directory: directory, Digest: found.artifact.Digest, Files: found.artifact.Files}}
	if found.flaw != nil {
		return nil, w.Refused(found.flaw)
	}
	if len(found.wants) == 0 {
		return parts, nil
	}
	digest := found.artifact.Digest
	for _, above := range at.above {
		if above == digest {
			return nil, w.Refused(failure.New(failure.ArtifactRefused, "it depends on a chart that depends on it; take one of both dependencies away"))
		}
	}
	if len(at.above) >= dependency.MaxDepth {
		return nil, w.Refused(failure.New(failure.ArtifactRefused, "it has dependencies of its own, and is itself one of a dependency, more than %d deep; "+
			"package the chart with its dependencies (`helm package --dependency-update`)", dependency.MaxDepth))
	}
	below, err := g.gather(ctx, level{digest: digest, directory: directory, above: append(at.above[:len(at.above):len(at.above)], digest)}, found.wants)
	if err != nil {
		return nil, err
	}
	return append(parts, below...), nil
}

// fetchOne fetches the dependency in the content that it had when the chart was put
// together before. If that is gone, from here and from its source, or was refused, it is
// what its version is now: as when nobody had put the chart together before.
func (g *gatherer) fetchOne(ctx context.Context, by string, ref reference.Reference) (verdict, error) {
	if digest, kept := g.pins.get(by, ref); kept {
		digest = g.Kept(ctx, ref, digest)
		found, err := g.takeOne(ctx, by, ref, digest)
		var changed *failure.Error
		if err == nil || !errors.As(err, &changed) || changed.Reason != failure.ArtifactChanged {
			return found, err
		}
	}
	digest, err := g.Resolve(ctx, ref)
	if err != nil {
		return verdict{}, err
	}
	return g.takeOne(ctx, by, ref, digest)
}

// takeOne fetches the dependency in this content, and remembers that it is of use.
func (g *gatherer) takeOne(ctx context.Context, by string, ref reference.Reference, digest string) (verdict, error) {
	found, err := g.take(ctx, ref, digest)
	if err != nil {
		return verdict{}, err
	}
	g.remote.refused.Used(ref.DigestQuestion(), digest)
	if known, kept := g.pins.get(by, ref); !kept || known != digest {
		g.pins.put(by, ref, digest)
	}
	return found, nil
}

// fetchElsewhere fetches a dependency whose repository says that it is in a registry.
// That is as good as if it came from there.
func (g *gatherer) fetchElsewhere(ctx context.Context, by string, w dependency.Want, ref reference.Reference, at reference.MovedToRegistry) (verdict, error) {
	title := g.title(ctx, ref)
	there, err := at.Reference(ref, w.Version)
	if err != nil {
		return verdict{}, err
	}
	found, err := g.fetchOne(ctx, by, there)
	if err == nil {
		g.grants.add(found.artifact.Digest, title)
		g.pins.put(by, ref, found.artifact.Digest)
	}
	return found, err
}
