// SPDX-License-Identifier: Apache-2.0

package clusterstack

import (
	"encoding/json"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/yamlbombs"
)

const metadata = `apiVersion: metadata.clusterstack.x-k8s.io/v1alpha1
versions:
  clusterStack: v2
  kubernetes: v1.31.6
  components:
    clusterAddon: v0-sha.ab12
    nodeImage: v1
`

func TestParseMetadata(t *testing.T) {
	got, err := ParseMetadata([]byte(metadata + "extra: {a: 1}\n"))
	want := Metadata{ClusterStack: Version{2, ChannelStable, ""}, Kubernetes: "v1.31.6", ClusterAddon: "v0-sha.ab12", Unknown: []string{"extra"}}
	must.Succeed(t, err)
	must.Equal(t, want, got)
	for name, content := range map[string]string{
		"empty":                        "",
		"a list":                       "- a",
		"no YAML":                      "a: [",
		"wrong type":                   "versions: 3",
		"no version":                   "versions: {components: {clusterAddon: v1}}",
		"a path in place of a version": "versions: {clusterStack: v1, components: {clusterAddon: v1/../../etc}}",
		"not a version of Kubernetes":  "versions: {clusterStack: v1, kubernetes: latest, components: {clusterAddon: v1}}",
		"too large":                    "a: " + strings.Repeat("x", MaxFileBytes),
	} {
		if got, err := ParseMetadata([]byte(content)); err == nil || !strings.HasPrefix(err.Error(), MetadataFile) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

const stages = `apiVersion: clusteraddonconfig.x-k8s.io/v1alpha1
clusterAddonVersion: clusteraddons.clusterstack.x-k8s.io/v1alpha1
addonStages:
  AfterControlPlaneInitialized:
  - name: cni
    action: apply
    waitForPostCondition: &w
      objects:
      - {key: agents, apiVersion: apps/v1, kind: DaemonSet, name: cilium, namespace: kube-system}
      conditions: agents.status.numberReady == agents.status.desiredNumberScheduled
  - name: old-cni
    action: delete
    waitForPreCondition: *w
    retries: 3
  AfterClusterUpgrade:
  - {name: cni, action: apply}
`

func TestParseStages(t *testing.T) {
	got, err := ParseStages([]byte(stages))
	must.Succeed(t, err)
	wait := []addonsv1.ObjectsCondition{{
		Objects:    []addonsv1.ConditionObject{{Key: "agents", APIVersion: "apps/v1", Kind: "DaemonSet", Name: "cilium", Namespace: "kube-system"}},
		Expression: "agents.status.numberReady == agents.status.desiredNumberScheduled",
	}}
	want := Stages{
		Hooks: map[string][]Stage{
			AfterControlPlaneInitialized: {{Name: "cni", Action: ActionApply, After: wait}, {Name: "old-cni", Action: ActionDelete, Before: wait}},
			"AfterClusterUpgrade":        {{Name: "cni", Action: ActionApply}},
		},
		Faults:  map[string]string{},
		Unknown: []string{"addonStages.AfterControlPlaneInitialized.retries"},
	}
	must.Equal(t, want, got)
}

// TestStagesThatNobodyRuns may be for another operator, and be whatever that takes.
func TestStagesThatNobodyRuns(t *testing.T) {
	for name, tc := range map[string]struct{ stages, says string }{
		"a name":      {"[{name: Foo_Bar, action: apply}]", `name "Foo_Bar"`},
		"an action":   {"[{name: cni, action: replace}]", `action "replace"`},
		"an object":   {"[{name: cni, action: apply, waitForPreCondition: {objects: [{key: a-b}], conditions: 'a'}}]", `key "a-b"`},
		"a type":      {"{cni: apply}", "wrong type"},
		"a scalar":    {"later", "wrong type"},
		"many stages": {"[" + strings.Repeat("{name: cni, action: apply},", maxStages+1) + "]", "stages, at most"},
	} {
		got, err := ParseStages([]byte("addonStages: {AfterClusterUpgrade: " + tc.stages + ", AfterControlPlaneInitialized: [{name: 1, action: apply}]}"))
		if err != nil || len(got.Hooks) != 1 || !strings.Contains(got.Faults["AfterClusterUpgrade"], tc.says) {
			t.Errorf("%s: %+v, %v", name, got, err)
			continue
		}
		if run := got.Hooks[AfterControlPlaneInitialized]; len(run) != 1 || run[0].Name != "1" {
			t.Errorf("%s: what is run is %+v", name, run)
		}
		if got, err := ParseStages([]byte("addonStages: {AfterControlPlaneInitialized: " + tc.stages + "}")); err == nil || !strings.Contains(err.Error(), "addonStages.AfterControlPlaneInitialized: ") {
			t.Errorf("%s of the hook that is run: %+v, %v", name, got, err)
		}
	}
}

func TestStagesThatAreRefused(t *testing.T) {
	stage := func(fields string) string {
		return "addonStages: {AfterControlPlaneInitialized: [{name: cni, action: apply" + fields + "}]}"
	}
	wait := func(fields string) string { return stage(", waitForPreCondition: {" + fields + "}") }
	object := func(key string) string { return "{key: " + key + ", apiVersion: v1, kind: Node, name: a}" }
	for name, tc := range map[string]struct{ content, says string }{
		"a path as a name":       {"addonStages: {AfterControlPlaneInitialized: [{name: ../../etc, action: apply}]}", `name "../../etc"`},
		"an action nobody knows": {"addonStages: {AfterControlPlaneInitialized: [{name: cni, action: replace}]}", `action "replace"`},
		"a key CEL can't have":   {wait("objects: [" + object("a-b") + "], conditions: 'true'"), `key "a-b"`},
		"a key that CEL keeps":   {wait("objects: [" + object("in") + "], conditions: 'in == 1'"), "conditions:"},
		"a key twice":            {wait("objects: [" + object("a") + ", " + object("a") + "], conditions: 'true'"), "twice"},
		"no conditions":          {wait("objects: [" + object("a") + "]"), "no conditions"},
		"not a bool":             {wait("conditions: '1 + 1'"), "not bool"},
		"not CEL":                {wait("conditions: 'a ='"), "Syntax error"},
		"a variable nobody set":  {wait("conditions: 'b.status.ready'"), "undeclared reference to 'b'"},
		"an object without kind": {wait("objects: [{key: a, apiVersion: v1, name: b}], conditions: 'true'"), "kind and name are required"},
		"no API version":         {wait("objects: [{key: a, apiVersion: apps/v1/x, kind: B, name: b}], conditions: 'true'"), `objects[0]: apiVersion: Invalid`},
		"an address":             {wait("objects: [{key: a, apiVersion: ../v1, kind: B, name: b}], conditions: 'true'"), `objects[0]: apiVersion: Invalid`},
		"a name that none has":   {wait("objects: [{key: a, apiVersion: v1, kind: B, name: b/c}], conditions: 'true'"), `objects[0]: name: Invalid`},
		"namespace, likewise":    {wait("objects: [{key: a, apiVersion: v1, kind: B, name: b, namespace: ..}], conditions: 'true'"), `objects[0]: namespace: Invalid`},
		"too many stages":        {"addonStages: {AfterControlPlaneInitialized: [" + strings.Repeat("{name: cni, action: apply},", maxStages+1) + "]}", "stages, at most"},
	} {
		if got, err := ParseStages([]byte(tc.content)); err == nil || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: %+v, %v; want an error with %q", name, got, err, tc.says)
		}
	}
}

// maxAllocated is for all that is done with one file, garbage included.
const maxAllocated = 128 << 20

// seeds adds the file, as the JSON that workers make of it.
func seeds(f *testing.F, file string) {
	asJSON, err := yaml.YAMLToJSON([]byte(file))
	must.Succeed(f, err)
	f.Add(asJSON)
	f.Add([]byte(`{"addonStages":[` + strings.Repeat("0,", 30_000) + `0]}`))
}

// expectLittle expects little memory to be taken for what workers hand on, which is small JSON:
// YAML that grows ends there.
func expectLittle(t *testing.T, data []byte, parse func()) {
	t.Helper()
	if !json.Valid(data) || len(data) > 64<<10 {
		t.Skip("no worker hands this on")
	}
	if n := yamlbombs.Allocated(parse); n > maxAllocated {
		t.Errorf("%d bytes took %d MiB", len(data), n>>20)
	}
}

func FuzzParseMetadata(f *testing.F) {
	seeds(f, metadata)
	f.Fuzz(func(t *testing.T, data []byte) {
		var m Metadata
		var err error
		expectLittle(t, data, func() { m, err = ParseMetadata(data) })
		if err == nil {
			if _, err := ParseVersion(m.ClusterAddon); err != nil {
				t.Errorf("clusterAddon %q becomes a part of a file's name", m.ClusterAddon)
			}
		}
	})
}

func FuzzParseStages(f *testing.F) {
	seeds(f, stages)
	f.Fuzz(func(t *testing.T, data []byte) {
		var got Stages
		var err error
		expectLittle(t, data, func() { got, err = ParseStages(data) })
		if err != nil {
			return
		}
		for hook, listed := range got.Hooks {
			for _, s := range listed {
				if !stageName.MatchString(s.Name) {
					t.Errorf("hook %s: stage %q becomes the name of a directory", hook, s.Name)
				}
			}
		}
	})
}
