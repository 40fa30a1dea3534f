// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/cluster-chandler/chandler/internal/credentials"
	"github.com/cluster-chandler/chandler/internal/source/failure"
)

const (
	// maxDependencies is how many dependencies a chart may have, those of its
	// dependencies counted in. Large umbrella charts have 30.
	maxDependencies = 64
	// maxDependencyDepth is how deep dependencies may depend on others. 1 is common.
	maxDependencyDepth = 4
	// askedAtOnce is how many dependencies of one chart are fetched at the same time.
	askedAtOnce = 8
)

// part is a dependency that was fetched, and the directory of the chart that it belongs in.
type part struct {
	directory string
	*Artifact
}

// gatherer fetches what one chart misses, each dependency as if an object referred to
// it: so with the same limits and caches, one download for all, and the same patience.
// It holds no place to unpack while it waits.
type gatherer struct {
	*Sources
	root Reference // whose credentials are used
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
func (g *gatherer) gather(ctx context.Context, at level, wants []want) ([]part, error) {
	if g.left.Add(-int64(len(wants))) < 0 {
		return nil, tooManyDependencies()
	}
	parts, failed := make([][]part, len(wants)), make([]error, len(wants))
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
	var all []part
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
func (g *gatherer) one(ctx context.Context, at level, w want) ([]part, error) {
	ref, err := w.reference(g.root)
	if err != nil {
		return nil, w.refused(err)
	}
	w = w.at(ref)
	found, err := g.fetchOne(ctx, at.digest, ref)
	var elsewhere movedToRegistry
	if errors.As(err, &elsewhere) {
		found, err = g.fetchElsewhere(ctx, at.digest, w, ref, elsewhere)
	}
	if err != nil {
		return nil, w.refused(err)
	}
	if err := w.is(found.artifact); err != nil {
		return nil, w.refused(err)
	}
	directory := at.directory + w.within + w.directoryOf(w.version)
	parts := []part{{directory, found.artifact}}
	if found.flaw != nil {
		return nil, w.refused(found.flaw)
	}
	if len(found.wants) == 0 {
		return parts, nil
	}
	digest := found.artifact.Digest
	for _, above := range at.above {
		if above == digest {
			return nil, w.refused(failure.New(failure.ArtifactRefused, "it depends on a chart that depends on it; take one of both dependencies away"))
		}
	}
	if len(at.above) >= maxDependencyDepth {
		return nil, w.refused(failure.New(failure.ArtifactRefused, "it has dependencies of its own, and is itself one of a dependency, more than %d deep; "+
			"package the chart with its dependencies (`helm package --dependency-update`)", maxDependencyDepth))
	}
	below, err := g.gather(ctx, level{digest: digest, directory: directory, above: append(at.above[:len(at.above):len(at.above)], digest)}, found.wants)
	if err != nil {
		return nil, err
	}
	return append(parts, below...), nil
}

// fetchOne fetches the dependency in the content that it had when the chart was put
// together before. If that is gone, from here and from its source, it is what its
// version is now: as when nobody had put the chart together before.
func (g *gatherer) fetchOne(ctx context.Context, by string, ref Reference) (verdict, error) {
	if digest, kept := g.pins.get(by, ref); kept {
		found, err := g.take(ctx, ref, digest)
		var changed *failure.Error
		if err == nil || !errors.As(err, &changed) || changed.Reason != failure.ArtifactChanged {
			return found, err
		}
	}
	digest, err := g.Resolve(ctx, ref)
	if err != nil {
		return verdict{}, err
	}
	found, err := g.take(ctx, ref, digest)
	if err == nil {
		g.pins.put(by, ref, digest)
	}
	return found, err
}

// fetchElsewhere fetches a dependency whose repository says that it is in a registry.
// That is as good as if it came from there.
func (g *gatherer) fetchElsewhere(ctx context.Context, by string, w want, ref Reference, at movedToRegistry) (verdict, error) {
	title := g.title(ctx, ref)
	there, err := at.reference(ref, w.version)
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

// at is the dependency as it is asked for.
func (w want) at(ref Reference) want {
	host, _ := ref.host()
	key := credentials.KeyOf(host)
	keys := " (config.json, or " + key + ".username and " + key + ".password)"
	w.subject, w.keys = ref.subject(), "the provider instance's own Secret "+ownSecret+keys
	if secret := ref.secretRef(); secret != nil {
		w.keys = "Secret " + ref.Namespace + "/" + secret.Name + ", or to " + w.keys
	}
	return w
}

// is checks that what was fetched is the dependency.
func (w want) is(artifact *Artifact) error {
	name, version := artifact.chart()
	if name != w.name || strings.TrimPrefix(version, "v") != strings.TrimPrefix(w.version, "v") {
		return failure.New(failure.ArtifactInvalid, "what is published there is chart %s; publish the right one, or correct the dependency and run `helm dependency update`", failure.Quote(name+" "+version))
	}
	return nil
}

func tooManyDependencies() *failure.Error {
	return failure.New(failure.ArtifactTooLarge, "it has more than %d dependencies, the most that is accepted, those of its dependencies counted in", maxDependencies)
}
