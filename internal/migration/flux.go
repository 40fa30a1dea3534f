// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// fluxRef names a source of Flux.
type fluxRef struct{ Kind, Name, Namespace string }

// helmRelease has fields of a HelmRelease (helm-controller, api/v2).
type helmRelease struct {
	Spec struct {
		Chart *struct {
			Spec struct {
				Chart     string
				SourceRef fluxRef
			}
		}
		ChartRef                                       fluxRef
		KubeConfig                                     struct{ SecretRef struct{ Name string } }
		Suspend                                        bool
		ReleaseName, TargetNamespace, StorageNamespace string
		DependsOn, PostRenderers                       []any
		CommonMetadata                                 any
		Upgrade                                        struct{ CRDs string }
		ValuesFrom                                     []struct {
			Kind, Name, ValuesKey, TargetPath string
			Optional                          *bool
		}
		Values map[string]any
	}
}

// helmReleases finds the releases of Flux on workload clusters.
func (g *gathering) helmReleases(ctx context.Context) error {
	all, err := g.here(ctx, schema.GroupVersionKind{Group: "helm.toolkit.fluxcd.io", Version: "v2", Kind: "HelmRelease"})
	if err != nil {
		return err
	}
	for i := range all {
		o, is := &all[i], &helmRelease{}
		if err := into(o, is); err != nil {
			return err
		}
		cluster := strings.TrimSuffix(is.Spec.KubeConfig.SecretRef.Name, "-kubeconfig")
		switch {
		case !g.isNamed(o.GetName()):
		case !slices.Contains(g.asked, cluster):
			g.note("HelmRelease %s isn't for a Cluster that is asked for, and stays", o.GetName())
		default:
			if err := g.helmRelease(ctx, o, is, cluster); err != nil {
				return err
			}
		}
	}
	return nil
}

// helmRelease adds the release of a HelmRelease. Names and namespaces are as in its GetReleaseName, GetReleaseNamespace and
// GetStorageNamespace.
func (g *gathering) helmRelease(ctx context.Context, o *unstructured.Unstructured, is *helmRelease, cluster string) (err error) {
	spec := is.Spec
	name := cmp.Or(spec.ReleaseName, strings.TrimPrefix(spec.TargetNamespace+"-"+o.GetName(), "-"))
	r := &Release{
		Cluster: cluster, Previous: name, Shown: spec.Values, owner: o, storage: cmp.Or(spec.StorageNamespace, g.World.Namespace),
		Addon: addonsv1.Addon{Name: name, Namespace: cmp.Or(spec.TargetNamespace, g.World.Namespace)},
	}
	if spec.Upgrade.CRDs == string(addonsv1.CRDPolicySkip) {
		r.Addon.CRDPolicy = addonsv1.CRDPolicySkip
	}
	if len(spec.DependsOn) > 0 {
		g.note("HelmRelease %s: dependsOn isn't taken over", o.GetName())
	}
	if len(spec.PostRenderers) > 0 || spec.CommonMetadata != nil {
		g.problem("HelmRelease %s: postRenderers and commonMetadata can't be taken over; take them out first", o.GetName())
	}
	if isFromGit(o) && !spec.Suspend {
		g.problem("HelmRelease %s comes from Git: set spec.suspend to true there first", o.GetName())
	}
	for _, from := range spec.ValuesFrom {
		if r.From = append(r.From, addonsv1.ValuesReference{Kind: from.Kind, Name: from.Name, Key: from.ValuesKey, Optional: from.Optional}); from.TargetPath != "" {
			r.Shown, r.From = nil, nil
			break
		}
	}
	if r.From != nil && r.Shown == nil {
		r.Shown = map[string]any{}
	}
	r.source, err = g.fluxSource(ctx, is)
	g.Releases = append(g.Releases, r)
	return err
}

// fluxSource finds the chart of a HelmRelease. Of a kind that an AddonStack hasn't, it is empty.
func (g *gathering) fluxSource(ctx context.Context, is *helmRelease) (s source, _ error) {
	ref := is.Spec.ChartRef
	if is.Spec.Chart != nil {
		ref, s.chart = is.Spec.Chart.Spec.SourceRef, is.Spec.Chart.Spec.Chart
	}
	if ref.Kind != "HelmRepository" && ref.Kind != "OCIRepository" {
		return s, nil
	}
	namespace := cmp.Or(ref.Namespace, g.World.Namespace)
	o := newObject(schema.GroupVersionKind{Group: "source.toolkit.fluxcd.io", Version: "v1", Kind: ref.Kind}, namespace, ref.Name)
	if err := g.Client.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
		return s, fmt.Errorf("reading %s %s/%s: %w", ref.Kind, namespace, ref.Name, err)
	}
	s.address, _, _ = unstructured.NestedString(o.Object, "spec", "url")
	s.tag, _, _ = unstructured.NestedString(o.Object, "spec", "ref", "tag")
	s.plain, _, _ = unstructured.NestedBool(o.Object, "spec", "insecure")
	if s.secret, _, _ = unstructured.NestedString(o.Object, "spec", "secretRef", "name"); s.secret != "" && namespace != g.World.Namespace {
		g.note("%s %s/%s: its Secret %s has to be in namespace %s, too", ref.Kind, namespace, ref.Name, s.secret, g.World.Namespace)
	}
	return s, nil
}
