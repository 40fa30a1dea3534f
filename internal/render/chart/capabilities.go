// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"encoding/json"
	"slices"

	"helm.sh/helm/v4/pkg/chart/common"
)

// helmVersion is .Capabilities.HelmVersion.Version.
const helmVersion = "v4.2.4"

// capabilities is a chart's .Capabilities. Its methods look like fields to a template.
type capabilities struct{ facts *inquiry }

func (c *capabilities) KubeVersion() *common.KubeVersion { return c.facts.kubeVersion() }

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

// versionSet is Helm's type of the same name. It has to be a slice of strings: charts call len on it, and sprig's has
// and join, which take nothing else. A slice has no room for a pointer to the inquiry, so that is behind the end of the
// list, where a template cannot see it.
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

// buildInfo has the fields of Helm's type of the same name. The fields about a build stay
// empty: a manifest must not change because Chandler was built again.
type buildInfo struct {
	Version           string `json:"version,omitempty"`
	GitCommit         string `json:"git_commit,omitempty"`
	GitTreeState      string `json:"git_tree_state,omitempty"`
	GoVersion         string `json:"go_version,omitempty"`
	KubeClientVersion string `json:"kube_client_version"`
}
