// SPDX-License-Identifier: Apache-2.0

package compatibility

import (
	"fmt"
	"path"
	"strings"

	"github.com/Masterminds/semver/v3"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/deprecation"
	"k8s.io/client-go/kubernetes/scheme"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/fleet/kubeversion"
)

// lastPatch stands for the newest patch of a minor version.
const lastPatch = 1 << 16

// farthest is how many minor versions between two others are steps of an upgrade.
const farthest = 50

// Minors returns the first patch of each minor version between two versions, and the latter. Beyond
// 50 minor versions it leaves out the rest.
func Minors(from, to string) []string {
	begin, err := kubeversion.Parse(from)
	end, other := kubeversion.Parse(to)
	if err != nil || other != nil || begin.Major() != end.Major() {
		return []string{to}
	}
	var all []string
	for minor := begin.Minor() + 1; minor < min(end.Minor(), begin.Minor()+farthest+1); minor++ {
		all = append(all, fmt.Sprintf("v%d.%d.0", end.Major(), minor))
	}
	return append(all, to)
}

// Upgrade returns the first version of Kubernetes on the way from one to another that a range
// doesn't allow, and that range; nil if all are allowed. A control plane takes each of the minor
// versions between. Any patch of these may be allowed. Cluster API refuses what is no version.
func Upgrade(ranges []addonsv1.KubernetesRange, from, to string) (version string, by *addonsv1.KubernetesRange) {
	limits, steps := read(ranges), Minors(from, to)
	for _, step := range steps[:len(steps)-1] {
		first, err := kubeversion.Parse(step)
		if err != nil {
			continue
		}
		last := semver.New(first.Major(), first.Minor(), lastPatch, "", "")
		for _, l := range limits {
			if !l.allows(first) && !l.allows(last) {
				return fmt.Sprintf("%d.%d", first.Major(), first.Minor()), l.of
			}
		}
	}
	return to, Excluding(ranges, to)
}

// Removed returns the first of some kinds that a version of Kubernetes doesn't serve any more, and the
// kind in its place, if there is one. The kinds are as in
// "policy/v1beta1/PodDisruptionBudget,v1/Service". The version that removes a kind is in
// k8s.io/api.
func Removed(kinds, version string) (kind, replacement string) {
	v, err := kubeversion.Parse(version)
	if err != nil || kinds == "" {
		return "", ""
	}
	for kind := range strings.SplitSeq(kinds, ",") {
		apiVersion, name := path.Split(kind)
		known, err := scheme.Scheme.New(schema.FromAPIVersionAndKind(strings.TrimSuffix(apiVersion, "/"), name))
		if err != nil {
			continue // of a CRD
		}
		removed, err := kubeversion.Parse(deprecation.RemovedRelease(known))
		if err != nil || removed.Compare(numbersOf(v)) > 0 {
			continue // it stays
		}
		if replaced, ok := known.(interface {
			APILifecycleReplacement() schema.GroupVersionKind
		}); ok {
			apiVersion, name := replaced.APILifecycleReplacement().ToAPIVersionAndKind()
			replacement = apiVersion + "/" + name
		}
		return kind, replacement
	}
	return "", ""
}
