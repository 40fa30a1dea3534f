// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	helmcommon "helm.sh/helm/v4/pkg/release/common"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
)

// Gather finds what is to be moved, and what was moved before.
func Gather(ctx context.Context, w *World) (f *Found, err error) {
	f = &Found{World: w, running: map[string]int{}}
	clusters, cas := &clusterv1.ClusterList{}, &addonsv1.ClusterAddonList{}
	f.Stacks, f.Others, err = w.stacks(ctx)
	if err := errors.Join(err, w.list(ctx, clusters), w.list(ctx, cas)); err != nil {
		return nil, err
	}
	f.Clusters = clusters.Items
	for _, ca := range cas.Items {
		f.running[ca.Spec.ClusterName] = len(ca.Spec.Stacks)
	}
	f.asked = f.selected(cmp.Or(w.Selector, &metav1.LabelSelector{}))
	find := map[Origin]func(context.Context) error{Provider: f.proxies, Flux: f.helmReleases, Helm: f.plain}
	if err := find[w.Origin](ctx); err != nil {
		return nil, err
	}
	f.Releases = slices.DeleteFunc(f.Releases, f.isMoved)
	for _, r := range f.Releases {
		if r.Problem, err = f.complete(ctx, r); err != nil {
			return nil, fmt.Errorf("cluster %s: %w", r.Cluster, err)
		}
		if r.Problem != "" {
			f.problem("%s %s", r, r.Problem)
		}
	}
	return f, nil
}

// isNamed reports whether an object or a release is asked for.
func (f *Found) isNamed(names ...string) bool {
	return len(f.Names) == 0 || slices.ContainsFunc(names, func(name string) bool { return slices.Contains(f.Names, name) })
}

// plain finds the releases of workload clusters by their records, but for those of add-ons that weren't moved.
func (f *Found) plain(ctx context.Context) error {
	for _, cluster := range f.asked {
		workload, err := f.Workload(ctx, cluster)
		if err != nil {
			return fmt.Errorf("cluster %s: %w", cluster, err)
		}
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
		if err := workload.List(ctx, list, client.MatchingLabels{"owner": "helm"}); err != nil {
			return fmt.Errorf("cluster %s: listing the records of releases: %w", cluster, err)
		}
		for release, is := range record.Summarize(list.Items) {
			r := &Release{
				Cluster: cluster, Previous: release.Name, Selector: f.Selector, storage: release.Namespace,
				Addon: addonsv1.Addon{Name: release.Name, Namespace: release.Namespace},
			}
			if is.Status != string(helmcommon.StatusUninstalled) && f.isNamed(release.Name, release.String()) && (!is.Owned || f.isMoved(r)) {
				f.Releases = append(f.Releases, r)
			}
		}
	}
	slices.SortFunc(f.Releases, func(a, b *Release) int { return cmp.Compare(a.String(), b.String()) })
	return nil
}

// complete reads the newest record of a release, and takes over what it says. It returns why the release can't be taken over, in words
// that follow its name; "" if it can.
func (f *Found) complete(ctx context.Context, r *Release) (problem string, _ error) {
	workload, err := f.Workload(ctx, r.Cluster)
	if err != nil {
		return "", err
	}
	store := &record.Store{Client: workload, Release: record.Release{Namespace: r.storage, Name: r.Addon.Name}}
	records, err := store.List(ctx)
	switch {
	case err != nil:
		return "", err
	case len(records) == 0:
		return fmt.Sprintf("has no record in namespace %s", r.storage), nil
	case records[0].Owned:
		return "is an add-on of AddonStack " + records[0].Stack, nil
	case records[0].Status != string(helmcommon.StatusDeployed):
		return fmt.Sprintf("is %s: have it deployed first", records[0].Status), nil
	}
	is, err := store.Load(ctx, records[0])
	if err != nil {
		return "", err
	}
	r.Values, r.Addon.Namespace, r.Addon.AdoptionPolicy = is.Helm.Config, is.Helm.Namespace, addonsv1.AdoptionPolicyAdopt
	if f.Renew {
		r.Addon.GeneratedValuesPolicy = addonsv1.GeneratedValuesPolicyRenew
	}
	if r.storage != r.Addon.Namespace {
		r.Addon.AdoptRelease = &addonsv1.ReleaseReference{StorageNamespace: r.storage}
	}
	f.show(ctx, r)
	if is.Helm.Chart == nil || is.Helm.Chart.Metadata == nil {
		return "has a record that doesn't say which chart it is", nil
	}
	chart, at := is.Helm.Chart.Metadata, &r.Addon.Chart
	if address := f.Repositories[chart.Name]; address != "" {
		*at = chartAt(address, chart.Name, "", false)
	}
	switch {
	case len(validation.IsDNS1123Label(r.Addon.Name)) > 0:
		return "has a name that no add-on can have", nil
	case at.OCI == nil && at.Helm == nil && at.Path == "":
		return fmt.Sprintf("has a chart of which nothing says where it is. Add --repository %s=ADDRESS", chart.Name), nil
	case at.Path == "":
		at.Version = cmp.Or(at.Version, chart.Version)
	}
	return "", nil
}

// show decides which values of a release may be in clear, and whether its template may stay.
func (f *Found) show(ctx context.Context, r *Release) {
	if r.Template != "" && !f.makes(ctx, r) {
		f.note("%s: the valuesTemplate of HelmChartProxy %s doesn't make the values that are installed: these are written", r, r.Previous)
		r.Template = ""
	}
	switch {
	case r.From == nil && !record.SameValues(r.Shown, r.Values):
		r.Shown = nil
	case r.Shown == nil:
		r.Shown = map[string]any{}
	}
}
