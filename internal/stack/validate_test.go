// SPDX-License-Identifier: Apache-2.0

package stack_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// fromRegistry is an add-on whose name is its version.
func fromRegistry(version, digest string) addonsv1.Addon {
	return addonsv1.Addon{Name: version, Chart: addonsv1.ChartSource{OCI: &addonsv1.OCISource{URL: "oci://example.org/web", Digest: digest}, Version: version}}
}

// clusterStack is a bundle that follows one.
func clusterStack(name, digest string) *addonsv1.BundleSource {
	return &addonsv1.BundleSource{
		ArtifactSource: addonsv1.ArtifactSource{OCI: &addonsv1.OCISource{URL: "oci://example.org/stacks", Digest: digest}}, ClusterStack: name,
	}
}

// withTemplate is a spec of one add-on with a values template.
func withTemplate(text string, mode addonsv1.ValuesTemplateMode) addonsv1.AddonStackSpec {
	return addonsv1.AddonStackSpec{
		ClusterSelector: &metav1.LabelSelector{}, Addons: []addonsv1.Addon{{Name: "a", ValuesTemplate: text, ValuesTemplateMode: mode}},
	}
}

// withValuesFrom is a spec of one add-on with values from Secrets.
func withValuesFrom(names ...string) addonsv1.AddonStackSpec {
	spec := withTemplate("", "")
	for _, name := range names {
		spec.Addons[0].ValuesFrom = append(spec.Addons[0].ValuesFrom, addonsv1.ValuesReference{Kind: "Secret", Name: name})
	}
	return spec
}

func TestValidate(t *testing.T) {
	all := &metav1.LabelSelector{}
	cases := map[string]struct {
		spec   addonsv1.AddonStackSpec
		reason string // "" for a valid spec
		says   []string
	}{
		"a plain spec is valid": {
			spec: addonsv1.AddonStackSpec{ClusterSelector: all, Addons: []addonsv1.Addon{{Name: "a"}, {Name: "b", DependsOn: []string{"a"}}}},
		},
		"a selector with an unknown operator": {
			spec: addonsv1.AddonStackSpec{ClusterSelector: &metav1.LabelSelector{
				MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "env", Operator: "Near"}},
			}},
			reason: addonsv1.InvalidSelectorReason,
			says:   []string{"spec.clusterSelector", "Near"},
		},
		"a dependency that isn't there": {
			spec:   addonsv1.AddonStackSpec{ClusterSelector: all, Addons: []addonsv1.Addon{{Name: "a", DependsOn: []string{"ghost"}}}},
			reason: addonsv1.UnknownDependencyReason,
			says:   []string{"spec.addons[0].dependsOn[0]", "ghost"},
		},
		"a cycle is named in full": {
			spec: addonsv1.AddonStackSpec{ClusterSelector: all, Addons: []addonsv1.Addon{
				{Name: "a", DependsOn: []string{"b"}}, {Name: "b", DependsOn: []string{"c"}}, {Name: "c", DependsOn: []string{"a"}},
			}},
			reason: addonsv1.DependencyCycleReason,
			says:   []string{"spec.addons[0].dependsOn", "a -> b -> c -> a"},
		},
		"a values template that can't be parsed": {
			spec:   withTemplate("a: 1\nb: {{ .Cluster.metadata.name }\n", addonsv1.ValuesTemplateModeStrict),
			reason: addonsv1.InvalidValuesReason,
			says:   []string{"spec.addons[0].valuesTemplate", "line:2:"},
		},
		"a lenient values template with a function that isn't there": {
			spec:   withTemplate("a: {{ env \"HOME\" }}\n", addonsv1.ValuesTemplateModeLenient),
			reason: addonsv1.InvalidValuesReason,
			says:   []string{"spec.addons[0].valuesTemplate", `function "env" not defined`},
		},
		"a values template with fields that may not be there": {
			spec: withTemplate("a: {{ dig \"b\" \"c\" .Cluster | quote }}\nd: {{ .Nothing.here }}\n", ""),
		},
		"a template in the name of a Secret": {spec: withValuesFrom("defaults", "{{ .Cluster.metadata.name }}-config")},
		"a template in the name of a Secret that can't be parsed": {
			spec:   withValuesFrom("defaults", "{{ .Cluster.metadata.name }-config"),
			reason: addonsv1.InvalidValuesReason,
			says:   []string{"spec.addons[0].valuesFrom[1].name", "{{ .Cluster.metadata.name }-config", "line:1:"},
		},
		"a template in the name of a Secret with a function that isn't there": {
			spec:   withValuesFrom(`{{ env "HOME" }}`),
			reason: addonsv1.InvalidValuesReason,
			says:   []string{"spec.addons[0].valuesFrom[0].name", `function "env" not defined`},
		},
		"two add-ons of one name": {
			spec:   addonsv1.AddonStackSpec{ClusterSelector: all, Addons: []addonsv1.Addon{{Name: "a"}, {Name: "a"}}},
			reason: addonsv1.DuplicateReleaseReason,
			says:   []string{"spec.addons[1].name"},
		},
		"a readiness check that is no expression": {
			spec: addonsv1.AddonStackSpec{ClusterSelector: all, Addons: []addonsv1.Addon{{Name: "a", Readiness: []addonsv1.ReadinessCheck{
				{APIVersion: "v1", Kind: "Pod", Expression: "self.status.phase =="}}}}},
			reason: addonsv1.InvalidReadinessReason,
			says:   []string{"spec.addons[0].readiness[0].expression"},
		},
		"an exact version, and ranges": {
			spec: addonsv1.AddonStackSpec{ClusterSelector: all, Addons: []addonsv1.Addon{fromRegistry("v1.2.3", ""), fromRegistry(">=1.2 <2 || ^4", ""), fromRegistry("1.2.3", "sha256:0")}},
		},
		"a version that is none": {
			spec:   addonsv1.AddonStackSpec{ClusterSelector: all, Addons: []addonsv1.Addon{fromRegistry("latest", "")}},
			reason: addonsv1.InvalidVersionReason,
			says:   []string{"spec.addons[0].chart.version", "latest", "1.17.x"},
		},
		"a range beside a digest": {
			spec:   addonsv1.AddonStackSpec{ClusterSelector: all, Addons: []addonsv1.Addon{fromRegistry("1.x", "sha256:0")}},
			reason: addonsv1.InvalidVersionReason,
			says:   []string{"spec.addons[0].chart.version", "digest"},
		},
		"a channel of a Cluster Stack": {
			spec: addonsv1.AddonStackSpec{ClusterSelector: all, Source: clusterStack("docker-scs-1-31", "")},
		},
		"a Cluster Stack that is none": {
			spec:   addonsv1.AddonStackSpec{ClusterSelector: all, Source: clusterStack("docker-scs-1", "")},
			reason: addonsv1.InvalidVersionReason,
			says:   []string{"spec.source.clusterStack", "docker-scs-1-31"},
		},
		"a Cluster Stack beside a digest": {
			spec:   addonsv1.AddonStackSpec{ClusterSelector: all, Source: clusterStack("docker-scs-1-31", "sha256:0")},
			reason: addonsv1.InvalidVersionReason,
			says:   []string{"spec.source.clusterStack", "digest"},
		},
		"good patches": {
			spec: addonsv1.AddonStackSpec{ClusterSelector: all, Addons: []addonsv1.Addon{{Name: "a",
				Kustomization: &addonsv1.KustomizationSource{Directory: "overlays/prod"},
				Patches: []addonsv1.Patch{
					{Patch: "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {type: NodePort}"},
					{Target: &addonsv1.PatchTarget{Kind: "Deployment", Name: "web-.*"}, Patch: "[{op: remove, path: /spec/replicas}]"},
				}}}},
		},
		"a patch that is neither a merge nor operations": {
			spec:   addonsv1.AddonStackSpec{ClusterSelector: all, Addons: []addonsv1.Addon{{Name: "a", Patches: []addonsv1.Patch{{Patch: "secret"}}}}},
			reason: addonsv1.InvalidPatchReason,
			says:   []string{"spec.addons[0].patches[0].patch"},
		},
		"a target that is no expression": {
			spec: addonsv1.AddonStackSpec{ClusterSelector: all, Addons: []addonsv1.Addon{{Name: "a", Patches: []addonsv1.Patch{
				{Target: &addonsv1.PatchTarget{Name: "web["}, Patch: "spec: {a: b}"}}}}},
			reason: addonsv1.InvalidPatchReason,
			says:   []string{"spec.addons[0].patches[0].target.name", "web["},
		},
		"a directory that leaves the artifact": {
			spec: addonsv1.AddonStackSpec{ClusterSelector: all, Addons: []addonsv1.Addon{{Name: "a",
				Manifests: &addonsv1.ManifestsSource{Directory: "a/../../b"}}}},
			reason: addonsv1.InvalidDirectoryReason,
			says:   []string{"spec.addons[0].manifests.directory"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			problems := stack.Validate(&tc.spec)
			if tc.reason == "" {
				if len(problems) > 0 {
					t.Errorf("problems: %v", problems)
				}
				return
			}
			if len(problems) != 1 || problems[0].Reason != tc.reason {
				t.Fatalf("problems = %v, want one of reason %s", problems, tc.reason)
			}
			for _, part := range tc.says {
				if !strings.Contains(problems[0].Error.Error(), part) {
					t.Errorf("%q doesn't say %q", problems[0].Error, part)
				}
			}
			if strings.Contains(problems[0].Error.Error(), "secret") {
				t.Errorf("%q shows a value", problems[0].Error)
			}
		})
	}
}

// A rollout of a tag that is moved brings other content to later waves. Versions, ranges and digests don't move.
func TestWarnings(t *testing.T) {
	s := followingStack()
	if got := stack.Warnings(&s.Spec); len(got) > 0 {
		t.Errorf("without a rollout: %v", got)
	}
	s.Spec.Rollout = &addonsv1.Rollout{}
	got := stack.Warnings(&s.Spec)
	if len(got) != 1 || !strings.HasPrefix(got[0], "spec.addons[") || !strings.Contains(got[0], `manifests.version: "latest"`) {
		t.Errorf("got %q", got)
	}
	s.Spec.Addons[len(s.Spec.Addons)-1].Manifests.OCI.Digest = "sha256:" + strings.Repeat("a", 64)
	if got := stack.Warnings(&s.Spec); len(got) > 0 {
		t.Errorf("with a digest: %v", got)
	}
	s.Spec.Source = &addonsv1.BundleSource{ArtifactSource: addonsv1.ArtifactSource{OCI: &addonsv1.OCISource{URL: "oci://example.org/stacks"}, Version: "stable"}}
	if got := stack.Warnings(&s.Spec); len(got) != 1 || !strings.HasPrefix(got[0], "spec.source.version") {
		t.Errorf("got %q", got)
	}
}
