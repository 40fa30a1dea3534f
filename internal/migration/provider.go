// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// chartProxyLabel on a HelmReleaseProxy names its HelmChartProxy.
const chartProxyLabel = "helmreleaseproxy.addons.cluster.x-k8s.io/helmchartproxy-name"

var proxyVersion = schema.GroupVersion{Group: addonsv1.GroupVersion.Group, Version: "v1alpha1"}

// proxy has fields of a HelmChartProxy or a HelmReleaseProxy (cluster-api-addon-provider-helm, api/v1alpha1).
type proxy struct {
	Spec struct {
		ClusterSelector                                            *metav1.LabelSelector
		ClusterRef                                                 struct{ Name string }
		ChartName, RepoURL, ReleaseName, Namespace, ValuesTemplate string
		Options                                                    struct{ SkipCRDs bool }
		Credentials                                                struct{ Secret struct{ Name string } }
	}
}

// proxies finds the releases of the Helm add-on provider.
func (g *gathering) proxies(ctx context.Context) error {
	charts, err := g.here(ctx, proxyVersion.WithKind("HelmChartProxy"))
	if err != nil {
		return err
	}
	made, err := g.here(ctx, proxyVersion.WithKind("HelmReleaseProxy"))
	if err != nil {
		return err
	}
	for i := range charts {
		chart := &charts[i]
		if !g.isNamed(chart.GetName()) {
			continue
		}
		g.owners = append(g.owners, *chart)
		for j := range made {
			if made[j].GetLabels()[chartProxyLabel] == chart.GetName() {
				if err := g.releaseProxy(&made[j], chart); err != nil {
					return err
				}
			}
		}
	}
	if len(g.owners) == 0 {
		return nil
	}
	return g.seeStopped(ctx)
}

// releaseProxy adds the release of a HelmReleaseProxy.
func (g *gathering) releaseProxy(o, chart *unstructured.Unstructured) error {
	is, from := &proxy{}, &proxy{}
	if err := into(chart, from); err != nil {
		return err
	}
	if err := into(o, is); err != nil {
		return err
	}
	spec := is.Spec
	if !slices.Contains(g.asked, spec.ClusterRef.Name) {
		g.problem("HelmReleaseProxy %s: Cluster %s isn't there, or -l leaves it out", o.GetName(), spec.ClusterRef.Name)
		return nil
	}
	r := &Release{
		Cluster: spec.ClusterRef.Name, Previous: chart.GetName(), Selector: from.Spec.ClusterSelector, Template: from.Spec.ValuesTemplate,
		Addon: addonsv1.Addon{Name: spec.ReleaseName, Namespace: spec.Namespace}, storage: spec.Namespace, owner: o,
		source: source{address: spec.RepoURL, chart: spec.ChartName, secret: spec.Credentials.Secret.Name},
	}
	if spec.Options.SkipCRDs {
		r.Addon.CRDPolicy = addonsv1.CRDPolicySkip
	}
	if r.source.secret != "" {
		g.note("HelmChartProxy %s: its credentials have to be in Secret %s of namespace %s, below the key .dockerconfigjson", chart.GetName(), r.source.secret, g.World.Namespace)
	}
	g.Releases = append(g.Releases, r)
	return nil
}

// seeStopped looks for the Helm add-on provider and its webhooks. While it runs it installs and uninstalls: its pause isn't
// looked at for what is deleted. While its webhooks are there without it, nobody can remove a finalizer.
func (g *gathering) seeStopped(ctx context.Context) error {
	for _, kind := range []schema.GroupVersionKind{
		{Group: "apps", Version: "v1", Kind: "Deployment"},
		{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingWebhookConfiguration"},
		{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "MutatingWebhookConfiguration"},
	} {
		for _, label := range []string{"addon-helm", "helm"} { // clusterctl's, and that of its manifests
			found, err := g.list(ctx, kind, client.MatchingLabels{"cluster.x-k8s.io/provider": label})
			if err != nil {
				return err
			}
			for _, o := range found {
				g.problem("%s %s of the Helm add-on provider is there. Stop the provider; its CRDs and their objects stay: clusterctl delete --addon helm", kind.Kind, o.GetName())
			}
		}
	}
	return nil
}
