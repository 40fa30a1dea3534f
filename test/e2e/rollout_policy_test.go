// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/docs"
	"github.com/cluster-chandler/chandler/test/must"
)

// TestOneGroupChangesRollouts puts the policy of docs/rights.md in force in one namespace. Two users have the shipped role of
// editors, and one of them is in the group.
func TestOneGroupChangesRollouts(t *testing.T) {
	t.Parallel()
	tn := newTenant(t)
	policy, binding := policyOfPage(t)
	policy.Name, binding.Name, binding.Spec.PolicyName = tn.namespace, tn.namespace, tn.namespace
	policy.Spec.MatchConstraints.NamespaceSelector = &metav1.LabelSelector{MatchLabels: labels(corev1.LabelMetadataName + "=" + tn.namespace)}
	tn.create(policy)
	tn.create(binding)
	t.Cleanup(func() { tn.remove(policy); tn.remove(binding) })

	rules := shippedRole(t, "people/editor_role.yaml").Rules
	editor := tn.as("editor", rules)
	name := tn.namespace + "-releaser"
	known, err := world.hub.AddUser(name, "release-managers")
	must.Succeed(t, err)
	world.hub.grant(t, tn.namespace, name, user(name), rules...)
	releaser, err := client.New(known.Config, client.Options{Scheme: scheme()})
	must.Succeed(t, err)

	s := tn.newStack("platform", labels("env=prod"), tn.addon("web", "web"))
	s.Spec.Rollout = &addonsv1.Rollout{Waves: []addonsv1.RolloutWave{{Name: "canary", Size: ofNumber(1), Approval: addonsv1.RolloutApprovalRequired}}}
	tn.Expect(editor.Create(t.Context(), s)).To(Succeed())
	patches := func(by client.Client, patch string) error {
		return by.Patch(t.Context(), tn.newStack("platform", nil), client.RawPatch(types.MergePatchType, []byte(patch)))
	}
	poll(t, patience, "the policy is in force", func() error {
		if err := patches(editor, `{"spec":{"rollout":null}}`); !apierrors.IsForbidden(err) {
			must.Succeed(t, patches(releaser, `{"spec":{"rollout":{"waves":[{"name":"canary","size":1,"approval":"Required"}]}}}`))
			return fmt.Errorf("an editor takes the rollout out: %w", err)
		}
		return nil
	})
	tn.Expect(apierrors.IsForbidden(patches(editor, `{"spec":{"rollout":{"waves":[{"name":"canary","size":1}]}}}`))).To(BeTrue(), "an editor takes a gate out")
	tn.Expect(patches(editor, `{"spec":{"removalLimit":"20%"}}`)).To(Succeed(), "all else is the editor's")
	tn.Expect(patches(editor, `{"metadata":{"labels":{"a":"b"}}}`)).To(Succeed())
	tn.Expect(patches(releaser, `{"spec":{"rollout":{"maxFailed":1}}}`)).To(Succeed())
	tn.Expect(patches(releaser, `{"spec":{"rollout":null}}`)).To(Succeed())
	tn.Expect(apierrors.IsForbidden(patches(editor, `{"spec":{"rollout":{}}}`))).To(BeTrue(), "an editor adds one")
	tn.Expect(patches(editor, `{"spec":{"removalLimit":"30%"}}`)).To(Succeed(), "a stack without a rollout is the editor's")
}

// policyOfPage reads the policy from the page.
func policyOfPage(t *testing.T) (*admissionv1.ValidatingAdmissionPolicy, *admissionv1.ValidatingAdmissionPolicyBinding) {
	t.Helper()
	pages, err := docs.Pages(world.root)
	must.Succeed(t, err)
	policy, binding := &admissionv1.ValidatingAdmissionPolicy{}, &admissionv1.ValidatingAdmissionPolicyBinding{}
	for _, page := range pages {
		blocks, err := page.Blocks("yaml")
		must.Succeed(t, err)
		for _, block := range blocks {
			first, second, found := strings.Cut(block.Text, "\n---\n")
			if page.Path == "docs/rights.md" && found {
				must.Succeed(t, yaml.UnmarshalStrict([]byte(first), policy))
				must.Succeed(t, yaml.UnmarshalStrict([]byte(second), binding))
			}
		}
	}
	return policy, binding
}
