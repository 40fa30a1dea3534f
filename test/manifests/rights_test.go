// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/cluster-chandler/chandler/test/must"
)

// wideRights are all that an instance may do outside of namespaces. docs/instance-scopes.md
// has the reason.
var wideRights = []string{
	"authentication.k8s.io/tokenreviews: create",
	"authorization.k8s.io/subjectaccessreviews: create",
	"apiextensions.k8s.io/customresourcedefinitions(addonstacks.addons.cluster.x-k8s.io): get",
}

// webhookRights are what the webhooks may do outside of namespaces; docs/instance-scopes.md
// has the reasons.
var webhookRights = []string{
	"addons.cluster.x-k8s.io/providerinstances: get list watch",
	"addons.cluster.x-k8s.io/addonstacks: list",
	"cluster.x-k8s.io/clusters: list",
	"addons.cluster.x-k8s.io/clusteraddons: get",
	"addons.cluster.x-k8s.io/providerinstances/status: patch",
	"authorization.k8s.io/subjectaccessreviews: create",
	"runtime.cluster.x-k8s.io/extensionconfigs(chandler): get patch",
	"rbac.authorization.k8s.io/clusterroles(chandler-webhooks): get",
}

// ownRights are what an instance may do in the namespace that it runs in.
var ownRights = []string{
	"coordination.k8s.io/leases: get create update",
	"addons.cluster.x-k8s.io/providerinstances: get create update delete",
	"addons.cluster.x-k8s.io/providerinstances/status: patch",
	"/events: create patch",
	"events.k8s.io/events: create patch",
}

// people's roles are bound by administrators, and by the built-in roles that they are parts of.
var people = []string{"chandler-viewer-role", "chandler-editor-role", "chandler-removal-confirmer-role", "chandler-rollout-approver-role"}

// generated are the rights in what is managed, as the controllers' sources say.
func generated(t *testing.T) []string {
	t.Helper()
	data, err := os.ReadFile("../../config/rbac/role.yaml")
	must.Succeed(t, err)
	role := &rbacv1.ClusterRole{}
	must.Succeed(t, yaml.UnmarshalStrict(data, role))
	return described(role.Rules)
}

// described has a line for each resource.
func described(rules []rbacv1.PolicyRule) []string {
	var lines []string
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				line := group + "/" + resource
				if len(rule.ResourceNames) > 0 {
					line += "(" + strings.Join(rule.ResourceNames, ",") + ")"
				}
				lines = append(lines, line+": "+strings.Join(rule.Verbs, " "))
			}
		}
	}
	return lines
}

// given are the rights that the overlay gives to the ServiceAccount of its Deployment,
// by namespace; "" is everywhere. Roles that aren't bound, and bindings of what isn't
// there, fail the test.
func given(t *testing.T, path string) map[string][]string {
	t.Helper()
	g := NewWithT(t)
	objects := build(t, path)
	deployment := one[appsv1.Deployment](t, objects, "Deployment")
	roles := map[string][]rbacv1.PolicyRule{}
	for _, role := range find[rbacv1.Role](t, objects, "Role") {
		roles["Role "+role.Namespace+"/"+role.Name] = role.Rules
	}
	for _, role := range find[rbacv1.ClusterRole](t, objects, "ClusterRole") {
		if !slices.Contains(people, role.Name) {
			roles["ClusterRole /"+role.Name] = role.Rules
		}
	}
	rights := map[string][]string{}
	bind := func(namespace string, ref rbacv1.RoleRef, subjects []rbacv1.Subject) {
		key := ref.Kind + " " + namespace + "/" + ref.Name
		g.Expect(roles).To(HaveKey(key), "%s binds %s", path, key)
		g.Expect(subjects).To(ConsistOf(rbacv1.Subject{
			Kind: "ServiceAccount", Namespace: deployment.Namespace, Name: deployment.Spec.Template.Spec.ServiceAccountName,
		}), "%s: %s", path, key)
		rights[namespace] = append(rights[namespace], described(roles[key])...)
		delete(roles, key)
	}
	for _, binding := range find[rbacv1.RoleBinding](t, objects, "RoleBinding") {
		bind(binding.Namespace, binding.RoleRef, binding.Subjects)
	}
	for _, binding := range find[rbacv1.ClusterRoleBinding](t, objects, "ClusterRoleBinding") {
		bind("", binding.RoleRef, binding.Subjects)
	}
	g.Expect(roles).To(BeEmpty(), "%s has roles that nobody has", path)
	return rights
}

// An instance may do what the controllers need in the namespaces that it manages. In
// its own it may do what keeps one leader. Elsewhere it may only ask which user reads
// its metrics.
func TestRightsOfInstances(t *testing.T) {
	for path, namespaces := range instances {
		t.Run(path, func(t *testing.T) {
			g := NewWithT(t)
			own := one[appsv1.Deployment](t, build(t, path), "Deployment").Namespace
			want := map[string][]string{"": slices.Clone(wideRights), own: slices.Clone(ownRights)}
			if namespaces == nil {
				want[""] = append(want[""], generated(t)...)
			}
			for _, namespace := range namespaces {
				want[namespace] = append(want[namespace], generated(t)...)
			}
			got := given(t, path)
			g.Expect(slices.Collect(maps.Keys(got))).To(ConsistOf(slices.Collect(maps.Keys(want))))
			for namespace := range want {
				g.Expect(got[namespace]).To(ConsistOf(want[namespace]), "in namespace %q", namespace)
			}
		})
	}
}

// The shared deployment reads no Secret of a cluster, and writes nothing that users
// write.
func TestRightsOfWebhooks(t *testing.T) {
	g := NewWithT(t)
	g.Expect(given(t, shared)).To(HaveLen(1))
	g.Expect(given(t, shared)[""]).To(ConsistOf(webhookRights))
}

// All in one has the rights of both, for all namespaces.
func TestRightsOfDefault(t *testing.T) {
	g := NewWithT(t)
	rights := given(t, allInOne)
	g.Expect(rights).To(HaveLen(2))
	g.Expect(rights[""]).To(ConsistOf(slices.Concat(generated(t), wideRights, webhookRights)))
	g.Expect(rights["chandler-system"]).To(ConsistOf(ownRights))
}

// Instances read ClusterProfiles only where an overlay says so, by a component that adds that to the rights which they have.
func TestRightsToProfiles(t *testing.T) {
	g := NewWithT(t)
	const profiles = "multicluster.x-k8s.io/clusterprofiles: get list watch"
	g.Expect(generated(t)).NotTo(ContainElement(HavePrefix("multicluster.x-k8s.io/")))
	for path, namespaces := range instances {
		got := given(t, withComponent(t, path, "profiles"))
		if namespaces == nil {
			namespaces = []string{""}
		}
		for _, namespace := range namespaces {
			g.Expect(got[namespace]).To(ContainElement(profiles), "%s: in namespace %q", path, namespace)
		}
	}
	g.Expect(given(t, withComponent(t, allInOne, "profiles"))[""]).To(ContainElement(profiles))
}

// What is for people is there once, beside the CRDs. Edits are no part of what is viewed, nor confirmations of edits.
func TestRolesOfPeople(t *testing.T) {
	const aggregates = "rbac.authorization.k8s.io/aggregate-to-"
	for _, path := range []string{allInOne, shared} {
		g := NewWithT(t)
		into := map[string][]string{}
		for _, role := range find[rbacv1.ClusterRole](t, build(t, path), "ClusterRole") {
			if !slices.Contains(people, role.Name) {
				continue
			}
			into[role.Name] = nil
			for label, value := range role.Labels {
				if builtIn, ok := strings.CutPrefix(label, aggregates); ok && value == "true" {
					into[role.Name] = append(into[role.Name], builtIn)
				}
			}
		}
		g.Expect(into).To(HaveLen(len(people)), path)
		g.Expect(into).To(HaveKeyWithValue("chandler-viewer-role", ConsistOf("view", "edit", "admin")), path)
		g.Expect(into).To(HaveKeyWithValue("chandler-editor-role", ConsistOf("edit", "admin")), path)
		g.Expect(into).To(HaveKeyWithValue("chandler-removal-confirmer-role", BeEmpty()), path)
		g.Expect(into).To(HaveKeyWithValue("chandler-rollout-approver-role", BeEmpty()), path)
	}
}

// The manager may do no more on the management cluster than it needs. A
// wildcard for verbs or groups, or the right to give itself more, is a mistake.
func TestRightsAreBounded(t *testing.T) {
	for _, line := range generated(t) {
		resource, verbs, _ := strings.Cut(line, ": ")
		for verb := range strings.SplitSeq(verbs, " ") {
			if slices.Contains([]string{"*", "escalate", "bind", "impersonate"}, verb) || strings.HasPrefix(resource, "*") {
				t.Errorf("%s is too much", line)
			}
			if resource == "/secrets" && verb != "get" && verb != "list" && verb != "watch" {
				t.Errorf("writes Secrets of the management cluster: %s", line)
			}
		}
	}
}

// Instances can be installed beside each other and beside the shared deployment: no
// object is in two overlays.
func TestNoCollisions(t *testing.T) {
	for _, webhooks := range []string{shared} {
		seen := map[string]string{}
		for _, path := range append(slices.Collect(maps.Keys(instances)), webhooks) {
			for _, o := range build(t, path) {
				key := identity(o)
				if other, ok := seen[key]; ok {
					t.Errorf("%s and %s would fight over %s", path, other, key)
				}
				seen[key] = path
			}
		}
	}
}

func identity(o *unstructured.Unstructured) string {
	return o.GroupVersionKind().GroupKind().String() + " " + o.GetNamespace() + "/" + o.GetName()
}
