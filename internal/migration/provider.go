// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"errors"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// chartProxyLabel on a HelmReleaseProxy names its HelmChartProxy.
const chartProxyLabel = "helmreleaseproxy.addons.cluster.x-k8s.io/helmchartproxy-name"

// providerLabels select the provider as clusterctl labels it, and as its manifests do.
const providerLabels = "cluster.x-k8s.io/provider in (addon-helm, helm)"

var proxyVersion = schema.GroupVersion{Group: addonsv1.GroupVersion.Group, Version: "v1alpha1"}

// chartProxy has fields of a HelmChartProxy (cluster-api-addon-provider-helm, api/v1alpha1).
type chartProxy struct {
	ClusterSelector *metav1.LabelSelector
	ValuesTemplate  string
}

// releaseProxy has fields of a HelmReleaseProxy.
type releaseProxy struct {
	ClusterRef                                 struct{ Name string }
	ChartName, RepoURL, ReleaseName, Namespace string
	Values                                     string // YAML
	Options                                    struct{ SkipCRDs bool }
	Credentials                                struct{ Secret struct{ Name string } }
}

// proxies finds the releases of the Helm add-on provider.
func (f *Found) proxies(ctx context.Context) error {
	charts, noCharts := read[chartProxy](ctx, f.World, proxyVersion.WithKind("HelmChartProxy"))
	made, noneMade := read[releaseProxy](ctx, f.World, proxyVersion.WithKind("HelmReleaseProxy"))
	if err := errors.Join(noCharts, noneMade); err != nil {
		return err
	}
	charts = slices.DeleteFunc(charts, func(chart object[chartProxy]) bool { return !f.isNamed(chart.GetName()) })
	if len(charts) == 0 {
		return nil
	}
	for _, chart := range charts {
		name := chart.GetName()
		for _, o := range made {
			if o.GetLabels()[chartProxyLabel] == name {
				f.addProxy(o, chart)
			}
		}
		// A HelmChartProxy is removed if a release of it is moved now, or was moved before.
		if slices.ContainsFunc(f.Releases, func(r *Release) bool { return r.Previous == name }) ||
			slices.ContainsFunc(f.Stacks, func(s addonsv1.AddonStack) bool { return s.Annotations[previousAnnotation] == name }) {
			f.owners = append(f.owners, chart.Unstructured)
		}
	}
	return f.seeStopped(ctx)
}

// addProxy adds the release of a HelmReleaseProxy.
func (f *Found) addProxy(o object[releaseProxy], chart object[chartProxy]) {
	cluster, secret := o.Spec.ClusterRef.Name, o.Spec.Credentials.Secret.Name
	if !slices.Contains(f.asked, cluster) {
		f.problem("HelmReleaseProxy %s: Cluster %s isn't there, or -l leaves it out", o.GetName(), cluster)
		return
	}
	r := &Release{
		Cluster: cluster, Previous: chart.GetName(), Selector: chart.Spec.ClusterSelector, Template: chart.Spec.ValuesTemplate,
		Addon:   addonsv1.Addon{Name: o.Spec.ReleaseName, Namespace: o.Spec.Namespace, Chart: chartAt(o.Spec.RepoURL, o.Spec.ChartName, secret, false)},
		storage: o.Spec.Namespace,
	}
	_ = yaml.Unmarshal([]byte(o.Spec.Values), &r.Shown) // what can't be read isn't the same as in the record
	if o.Spec.Options.SkipCRDs {
		r.Addon.CRDPolicy = addonsv1.CRDPolicySkip
	}
	if secret != "" {
		f.note("HelmChartProxy %s: its credentials have to be in Secret %s of namespace %s, below the key .dockerconfigjson", chart.GetName(), secret, f.Namespace)
	}
	f.Releases, f.owners = append(f.Releases, r), append(f.owners, o.Unstructured)
}

// seeStopped looks for the Helm add-on provider and its webhooks. While it runs it installs and uninstalls: its pause isn't
// looked at for what is deleted. While its webhooks are there without it, nobody can remove a finalizer.
func (f *Found) seeStopped(ctx context.Context) error {
	isProvider := &client.ListOptions{Raw: &metav1.ListOptions{LabelSelector: providerLabels}}
	for _, kind := range []schema.GroupVersionKind{
		{Group: "apps", Version: "v1", Kind: "Deployment"},
		{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingWebhookConfiguration"},
		{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "MutatingWebhookConfiguration"},
	} {
		found := &unstructured.UnstructuredList{}
		found.SetGroupVersionKind(kind)
		if err := f.list(ctx, found, client.InNamespace(""), isProvider); err != nil {
			return err
		}
		for _, o := range found.Items {
			f.problem("%s %s of the Helm add-on provider is there. Stop the provider; its CRDs and their objects stay: clusterctl delete --addon helm", kind.Kind, o.GetName())
		}
	}
	return nil
}
