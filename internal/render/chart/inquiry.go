// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"slices"

	"helm.sh/helm/v4/pkg/chart/common"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/render/job"
)

// inquiry answers questions about the facts and remembers them.
type inquiry struct {
	version *common.KubeVersion
	list    []string
	own     []string
	reads   []*listRead
	used    job.FactsUsed
}

// answers are all questions so far.
func (i *inquiry) answers() job.FactsUsed {
	for _, read := range i.reads {
		if !read.onlyAsked {
			i.used.APIVersions, i.used.Own = job.HashList(i.list, i.own...), i.own
		}
	}
	return i.used
}

func newInquiry(facts job.Facts) (*inquiry, error) {
	version, err := common.ParseKubeVersion(facts.KubeVersion)
	if err != nil {
		return nil, failure.New(job.ReasonChartInvalid, "kubeVersion %q of the cluster: %w", facts.KubeVersion, err)
	}
	return &inquiry{version: version, list: slices.Sorted(slices.Values(facts.APIVersions))}, nil
}

// bring adds the APIs of a chart's own crds/. They are applied before anything else, as in Helm, so
// that they count as there. They are no facts of the cluster, and not among the answers.
func (i *inquiry) bring(crds []*unstructured.Unstructured) {
	for _, crd := range crds {
		group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
		kind, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "kind")
		versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
		for _, version := range versions {
			version, _ := version.(map[string]any)
			if name, _ := version["name"].(string); crd.GetKind() == "CustomResourceDefinition" && version["served"] == true {
				i.own = append(i.own, group+"/"+name, group+"/"+name+"/"+kind)
			}
		}
	}
	slices.Sort(i.own)
	i.own = slices.Compact(i.own)
	for _, version := range i.own {
		if at, found := slices.BinarySearch(i.list, version); !found {
			i.list = slices.Insert(i.list, at, version)
		}
	}
}

func (i *inquiry) inRange(constraint string) bool {
	if i.used.KubeRange == nil {
		i.used.KubeRange = map[string]bool{}
	}
	i.used.KubeRange[constraint] = chartutil.IsCompatibleRange(constraint, i.version.String())
	return i.used.KubeRange[constraint]
}

func (i *inquiry) has(apiVersion string) bool {
	if slices.Contains(i.own, apiVersion) {
		return true
	}
	if i.used.Has == nil {
		i.used.Has = map[string]bool{}
	}
	_, found := slices.BinarySearch(i.list, apiVersion)
	i.used.Has[apiVersion] = found
	return found
}

func (i *inquiry) kubeVersion() *common.KubeVersion {
	i.used.KubeVersion = i.version.Version
	return i.version
}
