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

const (
	// lastPatch stands for the newest patch of a minor version.
	lastPatch = 1 << 16
	// farthest is how many minor versions from the cluster's own are looked at.
	farthest = 50
)

// Upgrade returns the first version of Kubernetes on the way from one to another that a range
// doesn't allow, and that range; nil if all are allowed. A control plane takes each of the minor
// versions between. Any patch of these may be allowed. The first 50 minor versions are looked at.
func Upgrade(ranges []addonsv1.KubernetesRange, from, to string) (version string, by *addonsv1.KubernetesRange) {
	begin, err := kubeversion.Parse(from)
	if err != nil {
		return to, Excluding(ranges, to)
	}
	end, err := kubeversion.Parse(to)
	if err != nil {
		return to, nil // Cluster API refuses it
	}
	limits := read(ranges)
	for minor := begin.Minor() + 1; minor < min(end.Minor(), begin.Minor()+farthest+1) && begin.Major() == end.Major(); minor++ {
		if by := excludingMinor(limits, end.Major(), minor); by != nil {
			return fmt.Sprintf("%d.%d", end.Major(), minor), by
		}
	}
	return to, Excluding(ranges, to)
}

// excludingMinor returns the first range that allows neither the first nor the last patch of a
// minor version.
func excludingMinor(limits []limit, major, minor uint64) *addonsv1.KubernetesRange {
	first, last := semver.New(major, minor, 0, "", ""), semver.New(major, minor, lastPatch, "", "")
	for _, l := range limits {
		if !l.allows(first) && !l.allows(last) {
			return l.of
		}
	}
	return nil
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
