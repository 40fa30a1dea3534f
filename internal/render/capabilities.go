// SPDX-License-Identifier: Apache-2.0

package render

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"helm.sh/helm/v4/pkg/chart/common"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
)

// helmVersion is what charts see as .Capabilities.HelmVersion.Version.
const helmVersion = "v4.2.4"

// Facts are what a chart may ask about its cluster.
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
	return f.APIVersions == "" || f.APIVersions == hashList(now.APIVersions, f.Own...)
}

func hashList(list []string, without ...string) string {
	list = slices.DeleteFunc(slices.Sorted(slices.Values(list)), func(v string) bool { return slices.Contains(without, v) })
	sum := sha256.Sum256([]byte(strings.Join(list, "\n")))
	return hex.EncodeToString(sum[:16])
}

// inquiry answers questions about the facts and remembers them.
type inquiry struct {
	version *common.KubeVersion
	list    []string
	own     []string
	reads   []*listRead
	used    FactsUsed
}

// answers are all questions so far.
func (i *inquiry) answers() FactsUsed {
	for _, read := range i.reads {
		if !read.onlyAsked {
			i.used.APIVersions, i.used.Own = hashList(i.list, i.own...), i.own
		}
	}
	return i.used
}

func newInquiry(facts Facts) (*inquiry, error) {
	version, err := common.ParseKubeVersion(facts.KubeVersion)
	if err != nil {
		return nil, failf(ReasonChartInvalid, "kubeVersion %q of the cluster: %w", facts.KubeVersion, err)
	}
	return &inquiry{version: version, list: slices.Sorted(slices.Values(facts.APIVersions))}, nil
}

// bring adds what a chart's own crds/ serve. They are applied before anything else, as in Helm, so
// that they count as there. That is no fact of the cluster: it isn't among the answers.
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

// capabilities is a chart's .Capabilities. Its methods look like fields to a template.
type capabilities struct{ facts *inquiry }

func (c *capabilities) KubeVersion() *kubeVersion { return &kubeVersion{c.facts} }

func (c *capabilities) HelmVersion() buildInfo { return buildInfo{Version: helmVersion} }

// APIVersions is a list, as in Helm, for the few charts that read it as one. Whoever asks it
// only with Has depends on that answer alone; so each list counts as read until Has is called on it.
func (c *capabilities) APIVersions() versionSet {
	list := make(versionSet, 0, len(c.facts.list)+1)
	for _, v := range c.facts.list {
		list = append(list, v)
	}
	read := &listRead{facts: c.facts}
	c.facts.reads = append(c.facts.reads, read)
	copy(list[len(list):cap(list)], []any{read})
	return list
}

// versionSet is Helm's type of the same name. A slice has no room for a pointer to the inquiry,
// so that rides behind the end of the list, where a template cannot see it.
type versionSet []any

// Has says whether the cluster serves a version ("apps/v1") or a kind ("apps/v1/Deployment").
func (v versionSet) Has(apiVersion string) bool {
	if read, ok := v[:len(v)+1][len(v)].(*listRead); ok {
		read.onlyAsked = true
		return read.facts.has(apiVersion)
	}
	return slices.Contains(v, any(apiVersion))
}

type listRead struct {
	facts     *inquiry
	onlyAsked bool
}

func (c *capabilities) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]any{
		"KubeVersion": c.KubeVersion(), "APIVersions": c.APIVersions(), "HelmVersion": c.HelmVersion()})
}

// kubeVersion has the fields and methods of Helm's type of the same name.
type kubeVersion struct{ facts *inquiry }

func (k *kubeVersion) Version() string    { return k.facts.kubeVersion().Version }
func (k *kubeVersion) GitVersion() string { return k.facts.kubeVersion().Version }
func (k *kubeVersion) String() string     { return k.facts.kubeVersion().String() }
func (k *kubeVersion) Major() string      { return k.facts.kubeVersion().Major }
func (k *kubeVersion) Minor() string      { return k.facts.kubeVersion().Minor }

func (k *kubeVersion) MarshalJSON() ([]byte, error) {
	v := k.facts.kubeVersion()
	return json.Marshal(map[string]string{"Version": v.Version, "Major": v.Major, "Minor": v.Minor})
}

// buildInfo has the fields of Helm's type of the same name. Those that tell of a build stay
// empty: a manifest must not change because Chandler was built again.
type buildInfo struct {
	Version           string `json:"version,omitempty"`
	GitCommit         string `json:"git_commit,omitempty"`
	GitTreeState      string `json:"git_tree_state,omitempty"`
	GoVersion         string `json:"go_version,omitempty"`
	KubeClientVersion string `json:"kube_client_version"`
}
