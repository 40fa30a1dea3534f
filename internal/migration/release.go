// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// Release is a release of Helm on one cluster.
type Release struct {
	Cluster string
	// Previous names what the release is from: a HelmChartProxy, or else the release itself.
	Previous string
	// Selector of the previous owner, nil if it has none.
	Selector *metav1.LabelSelector
	// Addon is what the release becomes, without values. Releases whose Addons are equal may be in one AddonStack.
	Addon addonsv1.Addon
	// Values of the release, as Helm has recorded them.
	Values map[string]any
	// Template makes the values on each cluster; "" for none.
	Template string
	// Shown are the values that are in clear in an object of the management cluster, nil if not all are. Those of From
	// are below them.
	Shown map[string]any
	From  []addonsv1.ValuesReference
	// Covered says that an AddonStack has it.
	Covered bool

	owner   *unstructured.Unstructured // a HelmReleaseProxy or a HelmRelease; nil if there is none
	storage string                     // the namespace of its records
	source  source                     // of its chart
}

// String names the release and its cluster.
func (r *Release) String() string {
	return fmt.Sprintf("release %s/%s on cluster %s", r.Addon.Namespace, r.Addon.Name, r.Cluster)
}

// Found is what there is.
type Found struct {
	Namespace string
	Origin    Origin
	Clusters  []unstructured.Unstructured // all of the namespace
	Releases  []*Release
	// Stacks are AddonStacks that a migration from the same origin made.
	Stacks []addonsv1.AddonStack
	// Others are the names of all other AddonStacks.
	Others []string
	// Problems are reasons why a release can't be taken over. Notes say what else people should know.
	Problems, Notes []string

	owners []unstructured.Unstructured // HelmChartProxies
}

func (f *Found) problem(format string, args ...any) {
	f.Problems = append(f.Problems, fmt.Sprintf(format, args...))
}

func (f *Found) note(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(f.Notes, text) {
		f.Notes = append(f.Notes, text)
	}
}

// selected returns the names of the Clusters that a selector selects, in order.
func (f *Found) selected(by *metav1.LabelSelector) (names []string) {
	selector, err := metav1.LabelSelectorAsSelector(by)
	for i := range f.Clusters {
		if err == nil && selector.Matches(labels.Set(f.Clusters[i].GetLabels())) {
			names = append(names, f.Clusters[i].GetName())
		}
	}
	return names
}

// covers reports whether an AddonStack has the release.
func (f *Found) covers(s *addonsv1.AddonStack, r *Release) bool {
	return slices.ContainsFunc(s.Spec.Addons, func(a addonsv1.Addon) bool {
		return a.Name == r.Addon.Name && a.Namespace == r.Addon.Namespace
	}) && slices.Contains(f.selected(s.Spec.ClusterSelector), r.Cluster)
}

// source is where a chart is.
type source struct {
	address string // oci://, https://, http://, or path: and a path; "" if it isn't known
	chart   string // below the address; "" if that has it
	secret  string // with credentials
	tag     string // of OCI, if it isn't the chart's version
	plain   bool   // without TLS
}

// chartSource returns the source in an AddonStack; false if it isn't known.
func (s source) chartSource(version string) (addonsv1.ChartSource, bool) {
	var secret *addonsv1.CredentialsReference
	if s.secret != "" {
		secret = &addonsv1.CredentialsReference{Name: s.secret}
	}
	var plain *bool
	if s.plain || strings.HasPrefix(s.address, "http://") {
		plain = new(true)
	}
	address := strings.TrimSuffix(s.address, "/")
	switch scheme, rest, _ := strings.Cut(address, ":"); scheme {
	case "oci":
		url := strings.TrimSuffix(address+"/"+s.chart, "/")
		return addonsv1.ChartSource{OCI: &addonsv1.OCISource{URL: url, SecretRef: secret, PlainHTTP: plain}, Version: cmp.Or(s.tag, version)}, true
	case "https", "http":
		return addonsv1.ChartSource{Helm: &addonsv1.HelmSource{URL: address, Chart: s.chart, SecretRef: secret, PlainHTTP: plain}, Version: version}, true
	case "path":
		return addonsv1.ChartSource{Path: rest}, true
	}
	return addonsv1.ChartSource{}, false
}
