// SPDX-License-Identifier: Apache-2.0

package job

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
)

// Facts are about the cluster of a chart.
type Facts struct {
	// KubeVersion is such as v1.36.3.
	KubeVersion string
	// APIVersions are such as "apps/v1" and "apps/v1/Deployment", in any order.
	APIVersions []string
}

// FactsUsed are the questions that a rendering asked, with the answers it got. They are part
// of an add-on's digest: a change of other facts is no reason to render again.
type FactsUsed struct {
	// KubeVersion is empty if it was not asked for.
	KubeVersion string `json:"kubeVersion,omitempty"`
	// KubeRange holds the constraint of Chart.yaml, and whether the cluster is in it.
	KubeRange map[string]bool `json:"kubeRange,omitempty"`
	// Has holds the arguments of .Capabilities.APIVersions.Has.
	Has map[string]bool `json:"has,omitempty"`
	// APIVersions is a hash of the whole list, for charts that read it other than with Has.
	APIVersions string `json:"apiVersions,omitempty"`
	// Own are left out of that hash: the chart brings them itself, in crds/.
	Own []string `json:"own,omitempty"`
}

// Holds says whether the same questions would get the same answers now.
func (f FactsUsed) Holds(now Facts) bool {
	version, err := common.ParseKubeVersion(now.KubeVersion)
	if err != nil {
		return false
	}
	if f.KubeVersion != "" && f.KubeVersion != version.Version {
		return false
	}
	for constraint, answer := range f.KubeRange {
		if chartutil.IsCompatibleRange(constraint, version.String()) != answer {
			return false
		}
	}
	for apiVersion, answer := range f.Has {
		if slices.Contains(now.APIVersions, apiVersion) != answer {
			return false
		}
	}
	return f.APIVersions == "" || f.APIVersions == HashList(now.APIVersions, f.Own...)
}

// HashList returns a hash of a list in any order, without some of its items.
func HashList(list []string, without ...string) string {
	list = slices.DeleteFunc(slices.Sorted(slices.Values(list)), func(v string) bool { return slices.Contains(without, v) })
	sum := sha256.Sum256([]byte(strings.Join(list, "\n")))
	return hex.EncodeToString(sum[:16])
}
