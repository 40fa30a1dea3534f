// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

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
	// Problem is why it can't be taken over, as its record says, in words that follow its name; "" for none.
	Problem string

	storage string // the namespace of its records
}

// String names the release and its cluster.
func (r *Release) String() string {
	return fmt.Sprintf("release %s/%s on cluster %s", r.Addon.Namespace, r.Addon.Name, r.Cluster)
}

// Found is what there is in a World.
type Found struct {
	*World
	Clusters []clusterv1.Cluster // all of the namespace
	Releases []*Release          // that no AddonStack has
	// Stacks are AddonStacks that a migration from the same origin made.
	Stacks []addonsv1.AddonStack
	// Others are the names of all other AddonStacks.
	Others []string
	// Problems are reasons why a release can't be taken over. Notes say what else people should know.
	Problems, Notes []string

	moved  []string                     // names of the Stacks that have a release which was found
	owners []*unstructured.Unstructured // of the origin, in the order of their removal
	asked  []string                     // names of the Clusters
	// running counts the AddonStacks of a cluster.
	running map[string]int
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
		if err == nil && selector.Matches(labels.Set(f.Clusters[i].Labels)) {
			names = append(names, f.Clusters[i].Name)
		}
	}
	return names
}

// isMoved reports whether an AddonStack has the release, and notes which one.
func (f *Found) isMoved(r *Release) bool {
	isIt := func(a addonsv1.Addon) bool { return a.Name == r.Addon.Name && a.Namespace == r.Addon.Namespace }
	at := slices.IndexFunc(f.Stacks, func(s addonsv1.AddonStack) bool {
		return slices.ContainsFunc(s.Spec.Addons, isIt) && slices.Contains(f.selected(s.Spec.ClusterSelector), r.Cluster)
	})
	if at >= 0 {
		f.moved = append(f.moved, f.Stacks[at].Name)
	}
	return at >= 0
}

// chartAt returns where a chart is, without its version. The address begins with oci:, https:, http:, or path:, which has
// a path behind it; for any other one, the result is empty. The chart is a name below the address, "" if that has it.
func chartAt(address, chart, secret string, isPlain bool) (is addonsv1.ChartSource) {
	var credentials *addonsv1.CredentialsReference
	if secret != "" {
		credentials = &addonsv1.CredentialsReference{Name: secret}
	}
	var plain *bool
	if isPlain || strings.HasPrefix(address, "http://") {
		plain = new(true)
	}
	address = strings.TrimSuffix(address, "/")
	switch scheme, path, _ := strings.Cut(address, ":"); scheme {
	case "oci":
		is.OCI = &addonsv1.OCISource{URL: strings.TrimSuffix(address+"/"+chart, "/"), SecretRef: credentials, PlainHTTP: plain}
	case "https", "http":
		is.Helm = &addonsv1.HelmSource{URL: address, Chart: chart, SecretRef: credentials, PlainHTTP: plain}
	case "path":
		is.Path = path
	}
	return is
}
