// SPDX-License-Identifier: Apache-2.0

// Package origins reads the places that the values of an add-on are from, as the user may read them.
package origins

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/cmd/kubectl-chandler/internal/summary"
	"github.com/cluster-chandler/chandler/internal/deliver/redacted"
	"github.com/cluster-chandler/chandler/internal/member"
	"github.com/cluster-chandler/chandler/internal/render/values"
	"github.com/cluster-chandler/chandler/internal/stack"
	"github.com/cluster-chandler/chandler/internal/valuesource"
	"github.com/cluster-chandler/chandler/internal/valuesource/layers"
)

// Reader reads from the management cluster.
type Reader struct {
	Client client.Client
	// Others is one that knows all kinds: it reads the objects that a Cluster refers to.
	Others client.Client
	// Cluster is the one whose add-ons are asked for.
	Cluster *addonsv1.ClusterAddon
}

// Of returns where the values of an add-on's release are from.
func (r Reader) Of(ctx context.Context, release *redacted.Release, addon string) *summary.Origins {
	stack, revision := release.Revision()
	return summary.OriginsOf(release, r.Layers(ctx, stack, revision, addon))
}

// Layers returns the layers of which the values of an add-on are merged, by a revision of its stack. One that can't be read has a problem.
func (r Reader) Layers(ctx context.Context, of, revision, addon string) (all []values.Layer) {
	a, err := r.addon(ctx, revision, addon)
	if err != nil {
		return []values.Layer{{From: "AddonStack " + of, Problem: err}}
	}
	m, noTemplates := r.member(ctx)
	given := layers.Reader{
		Renderer: layers.InProcess{}, Sources: valuesource.NewReader(r.Client, r.Client, nil), Namespace: r.Cluster.Namespace, Cluster: m,
		Object: layers.ObjectsBy(r.Others, r.Cluster.Namespace),
	}
	sources := a.ValuesFrom
	if noTemplates == nil {
		if sources, noTemplates = given.Named(ctx, a); noTemplates != nil {
			sources = a.ValuesFrom
		}
	}
	for _, layer := range layers.Of(a, sources) {
		l := values.Layer{From: fmt.Sprintf("AddonStack %s, %s", of, layer.Field)}
		if layer.Source != nil {
			l.From = fmt.Sprintf("%s %s, key %s", layer.Source.Kind, layer.Source.Name, stack.ValuesKey(*layer.Source))
		}
		if layer.IsTemplated() {
			l.Problem = noTemplates
		}
		if l.Problem == nil {
			l.Values, _, l.Problem = given.Read(ctx, layer)
		}
		all = append(all, l)
	}
	return all
}

func (r Reader) read(ctx context.Context, o client.Object, name string) error {
	return r.Client.Get(ctx, client.ObjectKey{Namespace: r.Cluster.Namespace, Name: name}, o)
}

// addon returns an add-on as a revision has it.
func (r Reader) addon(ctx context.Context, revision, name string) (*addonsv1.Addon, error) {
	kept, spec := &appsv1.ControllerRevision{}, &addonsv1.AddonStackSpec{}
	err := r.read(ctx, kept, revision)
	if err == nil {
		spec, err = stack.SpecOf(kept)
	}
	if err != nil {
		return nil, fmt.Errorf("reading ControllerRevision %s: %w", revision, err)
	}
	at := slices.IndexFunc(spec.Addons, func(a addonsv1.Addon) bool { return a.Name == name })
	if at < 0 {
		return nil, fmt.Errorf("revision %s has no add-on %s", revision, name)
	}
	return &spec.Addons[at], nil
}

// member returns the cluster as templates see it. Of others than Clusters, the management cluster doesn't have all of that.
func (r Reader) member(ctx context.Context) (*member.Member, error) {
	if ref := r.Cluster.Spec.ClusterRef; ref != nil {
		return nil, fmt.Errorf("only Chandler knows the labels and properties of a %s", ref.Kind)
	}
	cluster := &clusterv1.Cluster{}
	if err := r.read(ctx, cluster, r.Cluster.Spec.ClusterName); err != nil {
		return nil, fmt.Errorf("reading Cluster %s: %w", r.Cluster.Spec.ClusterName, err)
	}
	return member.OfCluster(cluster), nil
}
