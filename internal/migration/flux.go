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

// helmReleases finds the releases of Flux on workload clusters.
func (f *Found) helmReleases(ctx context.Context) error {
	all, err := read[helmRelease](ctx, f.World, schema.GroupVersionKind{Group: "helm.toolkit.fluxcd.io", Version: "v2", Kind: "HelmRelease"})
	if err != nil {
		return err
	}
	for _, o := range all {
		cluster := strings.TrimSuffix(o.Spec.KubeConfig.SecretRef.Name, "-kubeconfig")
		switch {
		case !f.isNamed(o.GetName()):
		case !slices.Contains(f.asked, cluster):
			f.note("HelmRelease %s isn't for a Cluster that is asked for, and stays", o.GetName())
		default:
			if err := f.addHelmRelease(ctx, o, cluster); err != nil {
				return err
			}
		}
	}
	return nil
}

// addHelmRelease adds the release of a HelmRelease. Names and namespaces are as in its GetReleaseName, GetReleaseNamespace and
// GetStorageNamespace.
func (f *Found) addHelmRelease(ctx context.Context, o object[helmRelease], cluster string) (err error) {
	spec := o.Spec
	name := cmp.Or(spec.ReleaseName, strings.TrimPrefix(spec.TargetNamespace+"-"+o.GetName(), "-"))
	r := &Release{
		Cluster: cluster, Previous: name, Shown: spec.Values, storage: cmp.Or(spec.StorageNamespace, f.Namespace),
		Addon: addonsv1.Addon{Name: name, Namespace: cmp.Or(spec.TargetNamespace, f.Namespace)},
	}
	if spec.Upgrade.CRDs == string(addonsv1.CRDPolicySkip) {
		r.Addon.CRDPolicy = addonsv1.CRDPolicySkip
	}
	if len(spec.DependsOn) > 0 {
		f.note("HelmRelease %s: dependsOn isn't taken over", o.GetName())
	}
	if len(spec.PostRenderers) > 0 || spec.CommonMetadata != nil {
		f.problem("HelmRelease %s: postRenderers and commonMetadata can't be taken over; take them out first", o.GetName())
	}
	if isFromGit(o.Unstructured) && !spec.Suspend {
		f.problem("HelmRelease %s comes from Git: set spec.suspend to true there first", o.GetName())
	}
	for _, from := range spec.ValuesFrom {
		if r.From = append(r.From, addonsv1.ValuesReference{Kind: from.Kind, Name: from.Name, Key: from.ValuesKey, Optional: from.Optional}); from.TargetPath != "" {
			r.Shown, r.From = nil, nil
			break
		}
	}
	r.Addon.Chart, err = f.fluxChart(ctx, &spec)
	f.Releases, f.owners = append(f.Releases, r), append(f.owners, o.Unstructured)
	return err
}

// fluxChart finds the chart of a HelmRelease. Of a kind that an AddonStack hasn't, it is empty.
func (f *Found) fluxChart(ctx context.Context, is *helmRelease) (at addonsv1.ChartSource, _ error) {
	ref, chart := is.ChartRef, ""
	if is.Chart != nil {
		ref, chart = is.Chart.Spec.SourceRef, is.Chart.Spec.Chart
	}
	if ref.Kind != "HelmRepository" && ref.Kind != "OCIRepository" {
		return at, nil
	}
	namespace, o := cmp.Or(ref.Namespace, f.Namespace), &unstructured.Unstructured{}
	o.SetGroupVersionKind(schema.GroupVersionKind{Group: "source.toolkit.fluxcd.io", Version: "v1", Kind: ref.Kind})
	if err := f.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: ref.Name}, o); err != nil {
		return at, fmt.Errorf("reading %s %s/%s: %w", ref.Kind, namespace, ref.Name, err)
	}
	url, _, _ := unstructured.NestedString(o.Object, "spec", "url")
	secret, _, _ := unstructured.NestedString(o.Object, "spec", "secretRef", "name")
	isPlain, _, _ := unstructured.NestedBool(o.Object, "spec", "insecure")
	if secret != "" && namespace != f.Namespace {
		f.note("%s %s/%s: its Secret %s has to be in namespace %s, too", ref.Kind, namespace, ref.Name, secret, f.Namespace)
	}
	at = chartAt(url, chart, secret, isPlain)
	at.Version, _, _ = unstructured.NestedString(o.Object, "spec", "ref", "tag")
	return at, nil
}
