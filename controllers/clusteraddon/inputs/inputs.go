// SPDX-License-Identifier: Apache-2.0

// Package inputs reads what the add-ons of a cluster are made of: charts, values, and what these refer to.
package inputs

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/releases"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/wanted"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/reasons"
	"github.com/cluster-chandler/chandler/internal/render/job"
	"github.com/cluster-chandler/chandler/internal/render/values"
	"github.com/cluster-chandler/chandler/internal/source"
	"github.com/cluster-chandler/chandler/internal/source/reference"
	"github.com/cluster-chandler/chandler/internal/stack"
	"github.com/cluster-chandler/chandler/internal/valuesource/layers"
)

// Inputs are what an installation is made of, without the facts of the cluster.
type Inputs struct {
	*wanted.Addon
	Chart    reference.Reference
	Artifact string // digest
	Version  string // of the object that the artifact is in, or its address elsewhere; "" of a path
	Values   map[string]any
	Optional string   // see [deliver.Terms]
	Secrets  []string // must not appear in a message
	Recorded bool     // a release record has what the values were, and nothing else here is known
}

// Reader reads what add-ons are made of: charts, values, and what these refer to.
type Reader struct {
	Sources *source.Sources
	Values  layers.Reader
	// ClusterAddon is the one whose add-ons these are.
	ClusterAddon client.ObjectKey
	Proofs       *releases.Proofs
	// Agreed returns the optional sources of values without which a person lets a release go on.
	Agreed func(deliver.Release) sets.Set[string]
	// Again says that a person asked to try at once what failed.
	Again bool
}

func (q Reader) keyOf(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: q.ClusterAddon.Namespace, Name: name}
}

// Of resolves the chart and the values of an add-on. An unchanged input costs no request.
func (q Reader) Of(ctx context.Context, a *wanted.Addon, record deliver.Summary) (*Inputs, error) {
	in := &Inputs{Addon: a, Chart: a.Reference(q.ClusterAddon.Namespace)}
	if err := q.Resolve(ctx, in, record); err != nil {
		return nil, err
	}
	return in, q.ReadValues(ctx, in, record)
}

// Resolve finds the chart's digest. The record has it for the same version of an object, registry or
// repository, so that after a restart only new charts are asked for. A record without proof isn't believed.
// A digest that was refused may have been published again.
func (q Reader) Resolve(ctx context.Context, in *Inputs, record deliver.Summary) (err error) {
	in.Version = q.Sources.Version(ctx, in.Chart)
	if in.Version != "" && in.Version == record.ArtifactVersion && record.Artifact != "" && q.Proofs.Prove(record) {
		in.Artifact = record.Artifact
		if !in.IsInstalledAs(record) {
			in.Artifact = q.Sources.Current(ctx, in.Chart, in.Artifact)
		}
		return nil
	}
	if in.Artifact, err = q.Sources.Resolve(ctx, in.Chart); err != nil {
		return OfAddon(in.Addon, err)
	}
	if q.Sources.Version(ctx, in.Chart) != in.Version {
		in.Version = "" // it changed meanwhile, and the digest may be of either
	}
	return nil
}

// ReadValues merges valuesFrom, values and valuesTemplate, each over the previous. It also notes the strings and
// long numbers that came from Secrets.
func (q Reader) ReadValues(ctx context.Context, in *Inputs, record deliver.Summary) error {
	a := in.Addon
	if a.Unnamed != nil {
		return a.Unnamed
	}
	var optional []string
	in.Values = map[string]any{}
	for _, layer := range layers.Of(&a.Addon, a.Sources) {
		given, found, err := q.Values.Read(ctx, layer)
		if ref := layer.Source; ref != nil && err == nil {
			if !found && HadValues(record, a, *ref) && !q.goesOnWithout(a, *ref) {
				err = &failure.Error{Reason: reasons.ValuesNotFound, Field: layer.Field, Err: fmt.Errorf("%s %s, key %q, was there when the add-on was installed, "+
					"and is gone; the add-on stays as it is. Create it again. To go on without it, take it out of valuesFrom, or annotate ClusterAddon %s with %s",
					ref.Kind, q.keyOf(ref.Name), stack.ValuesKey(*ref), q.ClusterAddon.Name, addonsv1.ReconcileNowAnnotation)}
			}
			if ptr.Deref(ref.Optional, false) && found {
				q.Agreed(a.Release()).Delete(stack.ValuesName(*ref))
				optional = append(optional, stack.ValuesName(*ref))
			}
			if ref.Kind == "Secret" {
				in.Secrets = job.StringsIn(in.Secrets, given)
			}
		}
		if err != nil {
			return err
		}
		if in.Values, err = values.MergeWithin(in.Values, given); err != nil {
			return failure.New(job.ReasonValuesInvalid, "addons[%s]: the values of all its sources, merged, are %w; "+
				"take out what the chart doesn't need, or split the add-on", a.Name, err)
		}
	}
	in.Optional = strings.Join(optional, ",")
	return nil
}

// HadValues reports whether an optional source of values was there when an add-on was installed by the same spec. A
// move or a restore may have left it behind.
func HadValues(record deliver.Summary, a *wanted.Addon, ref addonsv1.ValuesReference) bool {
	return record.Spec == a.SpecDigest() && slices.Contains(strings.Split(record.Optional, ","), stack.ValuesName(ref))
}

// goesOnWithout reports whether somebody agreed that an add-on continues without a source of values: by reconcile-now.
func (q Reader) goesOnWithout(a *wanted.Addon, ref addonsv1.ValuesReference) bool {
	agreed, name := q.Agreed(a.Release()), stack.ValuesName(ref)
	if q.Again {
		agreed.Insert(name)
	}
	return agreed.Has(name)
}

// FilesVersion returns the version that is shown of what isn't a chart, and has none of
// its own. It is the tag in the registry, or else the start of the artifact's digest.
func (in *Inputs) FilesVersion() string {
	const shown = len("sha256:") + 12
	return cmp.Or(in.Chart.Chart.Version, strings.Replace(in.Artifact[:min(shown, len(in.Artifact))], ":", "-", 1))
}
