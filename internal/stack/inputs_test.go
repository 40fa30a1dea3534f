// SPDX-License-Identifier: Apache-2.0

package stack_test

import (
	"maps"
	"slices"
	"testing"

	"k8s.io/utils/ptr"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/stack"
	"github.com/cluster-chandler/chandler/test/must"
)

// A revision keeps the digests of inputs beside the spec, and is another one with each of them.
func TestARevisionPinsInputs(t *testing.T) {
	s := newStack()
	contentOf := func(inputs stack.Inputs) []byte {
		content, err := stack.Content(servedObject(t, s, nil), &s.Spec, stack.Pins{}.Into(&s.Spec), inputs)
		must.Succeed(t, err)
		return content
	}
	one, two := stack.Inputs{"Secret/db/values.yaml": "1"}, stack.Inputs{"Secret/db/values.yaml": ""}
	revision := stack.Snapshot(s, contentOf(one), 1)
	if again := stack.Snapshot(s, contentOf(maps.Clone(one)), 2); again.Name != revision.Name {
		t.Error("the same inputs make another revision")
	}
	for _, other := range []stack.Inputs{nil, {}, two} {
		if stack.IsOf(revision, s, nil, other) || stack.Snapshot(s, contentOf(other), 1).Name == revision.Name {
			t.Errorf("%v make the same revision", other)
		}
	}
	if string(contentOf(nil)) != string(contentOf(stack.Inputs{})) {
		t.Error("without inputs the content isn't that of the spec")
	}
	pinned, err := stack.InputsOf(revision)
	if err != nil || !maps.Equal(pinned, one) || !stack.IsOf(revision, s, nil, one) {
		t.Errorf("got %v, %v", pinned, err)
	}
	if spec, unknown, err := stack.Read(revision); err != nil || len(unknown) > 0 || len(spec.Addons) != len(s.Spec.Addons) {
		t.Errorf("the spec is another: %+v, %v, %v", spec, unknown, err)
	}
}

// Without a rollout nothing is pinned. With one, that is all but what rotates, and what is another object for each cluster.
func TestStagedSources(t *testing.T) {
	s := newStack()
	s.Spec.Addons[0].ValuesFrom = []addonsv1.ValuesReference{
		{Kind: "Secret", Name: "db"}, {Kind: "ConfigMap", Name: "db", Key: "k"}, {Kind: "Secret", Name: "token", Staged: ptr.To(false)},
		{Kind: "Secret", Name: "{{ .Cluster.metadata.name }}"}, {Kind: "Secret", Name: "always", Staged: ptr.To(true)},
	}
	if staged := stack.StagedSources(&s.Spec); len(staged) > 0 {
		t.Errorf("without a rollout: %v", staged)
	}
	s.Spec.Rollout = &addonsv1.Rollout{}
	want := []string{"ConfigMap/db/k", "Secret/always/values.yaml", "Secret/db/values.yaml"}
	if names := slices.Sorted(maps.Keys(stack.StagedSources(&s.Spec))); !slices.Equal(names, want) {
		t.Errorf("got %v", names)
	}
}
