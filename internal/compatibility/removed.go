// SPDX-License-Identifier: Apache-2.0

package compatibility

import (
	"strings"

	"github.com/Masterminds/semver/v3"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// Removed returns the first of some kinds that a version of Kubernetes doesn't serve any more. It also
// returns the kind in its place, if there is one. Kinds are as in
// "policy/v1beta1/PodDisruptionBudget,v1/Service". k8s.io/api says which kinds were removed when.
func Removed(kinds, version string) (kind, replacement string) {
	v, err := semver.NewVersion(version)
	if err != nil || kinds == "" {
		return "", ""
	}
	for kind := range strings.SplitSeq(kinds, ",") {
		parts := strings.Split(kind, "/")
		gvk := schema.GroupVersionKind{Version: parts[max(0, len(parts)-2)], Kind: parts[len(parts)-1]}
		if len(parts) > 2 {
			gvk.Group = parts[0]
		}
		known, err := scheme.Scheme.New(gvk)
		if err != nil {
			continue // of a CRD
		}
		removed, ok := known.(interface{ APILifecycleRemoved() (major, minor int) })
		if !ok {
			continue
		}
		major, minor := removed.APILifecycleRemoved()
		if semver.New(uint64(max(0, major)), uint64(max(0, minor)), 0, "", "").Compare(numbersOf(v)) > 0 {
			continue
		}
		if replaced, ok := known.(interface {
			APILifecycleReplacement() schema.GroupVersionKind
		}); ok {
			replacement = strings.Join([]string{replaced.APILifecycleReplacement().GroupVersion().String(), replaced.APILifecycleReplacement().Kind}, "/")
		}
		return kind, replacement
	}
	return "", ""
}
