// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	helmcommon "helm.sh/helm/v4/pkg/release/common"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
)

// gathering is one look at the world.
type gathering struct {
	*World
	*Found
	asked     []string                 // names of the Clusters
	workloads map[string]client.Client // by the name of the Cluster
}

// Gather finds what is to be moved, and what was moved before.
func Gather(ctx context.Context, w *World) (*Found, error) {
	g := &gathering{World: w, Found: &Found{Namespace: w.Namespace, Origin: w.Origin}, workloads: map[string]client.Client{}}
	var err error
	if g.Found.Clusters, err = w.here(ctx, clusterKind); err != nil {
		return nil, err
	}
	if g.Stacks, g.Others, err = w.stacks(ctx); err != nil {
		return nil, err
	}
	g.asked = g.selected(cmp.Or(w.Clusters, &metav1.LabelSelector{}))
	read := map[Origin]func(context.Context) error{Provider: g.proxies, Flux: g.helmReleases, Helm: g.plain}
	if err := read[w.Origin](ctx); err != nil {
		return nil, err
	}
	for _, r := range g.Releases {
		r.Covered = slices.ContainsFunc(g.Stacks, func(s addonsv1.AddonStack) bool { return g.covers(&s, r) })
		if r.Covered {
			continue
		}
		if err := g.complete(ctx, r); err != nil {
			return nil, fmt.Errorf("cluster %s: %w", r.Cluster, err)
		}
	}
	return g.Found, nil
}

// isNamed reports whether an object or a release is asked for.
func (g *gathering) isNamed(names ...string) bool {
	return len(g.Names) == 0 || slices.ContainsFunc(names, func(name string) bool { return slices.Contains(g.Names, name) })
}

func (g *gathering) workload(ctx context.Context, cluster string) (_ client.Client, err error) {
	if g.workloads[cluster] == nil {
		g.workloads[cluster], err = g.Workload(ctx, cluster)
	}
	return g.workloads[cluster], err
}

// complete reads the newest record of a release, and takes over what it says.
func (g *gathering) complete(ctx context.Context, r *Release) error {
	workload, err := g.workload(ctx, r.Cluster)
	if err != nil {
		return err
	}
	store := &record.Store{Client: workload, Release: record.Release{Namespace: r.storage, Name: r.Addon.Name}}
	records, _, err := store.List(ctx)
	switch {
	case err != nil:
		return err
	case len(records) == 0:
		g.problem("%s: namespace %s has no record of it", r, r.storage)
		return nil
	case records[0].Owned:
		g.problem("%s is an add-on of AddonStack %s", r, records[0].Stack)
		return nil
	case records[0].Status != string(helmcommon.StatusDeployed):
		g.problem("%s is %s: have it deployed first", r, records[0].Status)
		return nil
	}
	is, err := store.Load(ctx, records[0])
	if err != nil {
		return err
	}
	r.Values, r.Addon.Namespace, r.Addon.AdoptionPolicy = is.Helm.Config, is.Helm.Namespace, addonsv1.AdoptionPolicyAdopt
	if r.Values == nil {
		r.Values = map[string]any{}
	}
	if r.storage != r.Addon.Namespace {
		r.Addon.AdoptRelease = &addonsv1.ReleaseReference{StorageNamespace: r.storage}
	}
	if len(validation.IsDNS1123Label(r.Addon.Name)) > 0 {
		g.problem("%s: an add-on can't have this name", r)
	}
	if is.Helm.Chart == nil || is.Helm.Chart.Metadata == nil {
		g.problem("%s: its record doesn't say which chart it is", r)
		return nil
	}
	chart, known := is.Helm.Chart.Metadata, false
	if address := g.Repositories[chart.Name]; address != "" {
		r.source = source{address: address, chart: chart.Name}
	}
	if r.Addon.Chart, known = r.source.chartSource(chart.Version); !known {
		g.problem("%s: nothing says where its chart is. Add --repository %s=ADDRESS", r, chart.Name)
	}
	g.show(ctx, r)
	return nil
}

// show decides which values of a release may be in clear, and whether its template may stay.
func (g *gathering) show(ctx context.Context, r *Release) {
	switch {
	case g.World.Origin == Provider: // a HelmReleaseProxy has them
		r.Shown = r.Values
		if r.Template != "" && !g.makes(ctx, r) {
			g.note("%s: the valuesTemplate of HelmChartProxy %s doesn't make the values that are installed: these are written", r, r.Previous)
			r.Template = ""
		}
	case r.From != nil:
	case same(r.Shown, r.Values):
		r.Shown = r.Values
	default:
		r.Shown = nil
	}
}
