// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"strings"
	"time"

	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// patience is how long the API server and its controllers may take to notice policies and roles.
const patience = time.Minute

const specPolicy = "chandler-clusteraddon-spec"

// refusedBy returns whether it was this policy that refused a request.
func refusedBy(policy string, err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "'"+policy+"'")
}

// as returns a client that is this user.
func (s server) as(user string, groups ...string) client.Client {
	s.t.Helper()
	config := rest.CopyConfig(s.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: append(groups, "system:authenticated")}
	c, err := client.New(config, client.Options{})
	NewWithT(s.t).Expect(err).NotTo(HaveOccurred())
	return c
}

// bind gives a user a ClusterRole in a namespace, or everywhere.
func (s server) bind(user, namespace, role string) {
	s.t.Helper()
	subjects := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}}
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}
	named := metav1.ObjectMeta{Namespace: namespace, Name: strings.ReplaceAll(user, ":", "-")}
	var binding client.Object = &rbacv1.RoleBinding{ObjectMeta: named, RoleRef: ref, Subjects: subjects}
	if namespace == "" {
		binding = &rbacv1.ClusterRoleBinding{ObjectMeta: named, RoleRef: ref, Subjects: subjects}
	}
	NewWithT(s.t).Expect(s.Create(s.t.Context(), binding)).To(Succeed())
}

// own makes a ClusterRole of one rule for Chandler's objects.
func (s server) own(name string, resources, verbs []string) {
	s.t.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}}
	role.Rules = []rbacv1.PolicyRule{{APIGroups: []string{"addons.cluster.x-k8s.io"}, Resources: resources, Verbs: verbs}}
	NewWithT(s.t).Expect(s.Create(s.t.Context(), role)).To(Succeed())
}

func clusterAddon(namespace, name, stack string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{}}
	o.SetAPIVersion("addons.cluster.x-k8s.io/v1beta1")
	o.SetKind("ClusterAddon")
	o.SetNamespace(namespace)
	o.SetName(name)
	o.Object["spec"] = map[string]any{"clusterName": name, "stacks": []any{map[string]any{"name": stack}}}
	return o
}

func merge(text string) client.Patch { return client.RawPatch(types.MergePatchType, []byte(text)) }

const (
	toOther   = `{"spec":{"stacks":[{"name":"other"}]}}`
	confirmed = `{"metadata":{"annotations":{"addons.cluster.x-k8s.io/confirm-removal":"3f9a2c1b"}}}`
	reported  = `{"status":{"readyAddons":"0/1"}}`
)

// Instances write spec of ClusterAddons, each in its namespaces, and so do administrators, who move and restore them. Other
// rights don't suffice, with wildcards for verbs or for resources.
func specOfClusterAddons(s server) {
	g, ctx := NewWithT(s.t), s.t.Context()
	everything := []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"}
	s.own("all-verbs", []string{"addonstacks", "clusteraddons"}, []string{"*"})
	s.own("all-resources", []string{"*"}, everything)
	people := map[string]string{"verbs": "all-verbs", "resources": "all-resources", "confirmer": "chandler-removal-confirmer-role"}
	for user, role := range people {
		s.bind(user, "team-a", role)
	}
	s.bind("velero", "", "cluster-admin")
	g.Eventually(func() bool {
		return refusedBy(specPolicy, s.as("verbs").Create(ctx, clusterAddon("team-a", "prod", "mine"), client.DryRunAll))
	}, patience, "200ms").Should(BeTrue(), "the API server has noticed the policy")

	instance := s.as("system:serviceaccount:chandler-red:chandler-manager-red")
	prod := clusterAddon("team-a", "prod", "platform")
	g.Expect(instance.Create(ctx, prod)).To(Succeed())
	g.Expect(instance.Patch(ctx, prod, merge(`{"spec":{"stacks":[{"name":"platform","revision":"platform-1"}]}}`))).To(Succeed())
	g.Expect(instance.Status().Patch(ctx, prod, merge(reported))).To(Succeed())
	for namespace, account := range map[string]string{
		"team-b": "chandler-blue:chandler-manager-blue", "team-d": "chandler-green:chandler-manager-green", "team-c": "chandler-violet:chandler-manager-violet",
		"chandler-instance": "chandler-instance:chandler-manager",
	} {
		err := s.as("system:serviceaccount:"+account).Create(ctx, clusterAddon(namespace, "prod", "platform"), client.DryRunAll)
		g.Expect(err).NotTo(HaveOccurred(), account)
	}

	for user := range people {
		c := s.as(user)
		g.Expect(refusedBy(specPolicy, c.Patch(ctx, prod.DeepCopy(), merge(toOther)))).To(BeTrue(), "%s patches", user)
		g.Expect(refusedBy(specPolicy, c.Patch(ctx, prod.DeepCopy(), merge(`{"spec":{"stacks":null}}`)))).To(BeTrue(), "%s empties it", user)
		g.Expect(c.Patch(ctx, prod.DeepCopy(), merge(confirmed))).To(Succeed(), "%s confirms", user)
		if user == "confirmer" {
			continue
		}
		g.Expect(refusedBy(specPolicy, c.Create(ctx, clusterAddon("team-a", "another", "mine")))).To(BeTrue(), "%s creates", user)
		applied := clusterAddon("team-a", "prod", "mine")
		g.Expect(refusedBy(specPolicy, c.Patch(ctx, applied, client.Apply, client.FieldOwner(user), client.ForceOwnership))).To(BeTrue(), "%s applies", user) //nolint:staticcheck // it has no typed apply
		g.Expect(s.Get(ctx, client.ObjectKeyFromObject(prod), prod)).To(Succeed())
		changed := prod.DeepCopy()
		unstructured.RemoveNestedField(changed.Object, "spec", "stacks")
		g.Expect(refusedBy(specPolicy, c.Update(ctx, changed))).To(BeTrue(), "%s updates", user)
		labelled := prod.DeepCopy()
		labelled.SetLabels(map[string]string{"by": user})
		g.Expect(c.Update(ctx, labelled)).To(Succeed(), "%s labels", user)
	}

	for name, admin := range map[string]client.Client{"with cluster-admin": s.as("velero"), "of system:masters": s.Client} {
		kept := prod.DeepCopy()
		g.Expect(admin.Get(ctx, client.ObjectKeyFromObject(prod), kept)).To(Succeed())
		g.Expect(admin.Delete(ctx, kept)).To(Succeed())
		restored := kept.DeepCopy()
		restored.SetResourceVersion("")
		restored.SetUID("")
		g.Expect(admin.Create(ctx, restored)).To(Succeed(), "an administrator %s restores it", name)
		g.Expect(restored.Object["spec"]).To(Equal(kept.Object["spec"]))
		g.Expect(admin.Patch(ctx, restored, merge(toOther), client.DryRunAll)).To(Succeed(), name)
	}
}

func addonPlan(namespace, stack string, spec map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{}}
	o.SetAPIVersion("addons.cluster.x-k8s.io/v1beta1")
	o.SetKind("AddonPlan")
	o.SetNamespace(namespace)
	o.SetName("plan")
	spec["stackName"] = stack
	o.Object["spec"] = spec
	return o
}

// Who approves rollouts makes plans of revisions, and only who may write the stack makes one of a template.
func plansOfTemplates(s server) {
	const policy = "chandler-addonplan-template"
	g, ctx := NewWithT(s.t), s.t.Context()
	s.bind("plan-approver", "team-a", "chandler-rollout-approver-role")
	s.bind("plan-editor", "team-a", "edit")
	s.own("writes-mine", []string{"addonplans"}, []string{"create"})
	s.bind("plan-writer", "team-a", "writes-mine")
	mine := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "mine"}}
	mine.Rules = []rbacv1.PolicyRule{{APIGroups: []string{"addons.cluster.x-k8s.io"}, Resources: []string{"addonstacks"}, ResourceNames: []string{"mine"}, Verbs: []string{"update"}}}
	g.Expect(s.Create(ctx, mine)).To(Succeed())
	g.Expect(s.Create(ctx, &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "mine"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "mine"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "plan-writer"}}})).To(Succeed())
	plan := func(user, stack string, spec map[string]any) error {
		return s.as(user).Create(ctx, addonPlan("team-a", stack, spec), client.DryRunAll)
	}
	template := func() map[string]any {
		return map[string]any{"template": map[string]any{"clusterSelector": map[string]any{}}}
	}
	g.Eventually(func() bool { return refusedBy(policy, plan("plan-approver", "platform", template())) }, patience, "200ms").Should(BeTrue())
	g.Eventually(func() error { return plan("plan-editor", "platform", template()) }, patience, "200ms").Should(Succeed(), "roles are aggregated")
	g.Expect(plan("plan-approver", "platform", map[string]any{})).To(Succeed())
	g.Expect(plan("plan-approver", "platform", map[string]any{"revision": "platform-1"})).To(Succeed())
	g.Expect(plan("plan-writer", "mine", template())).To(Succeed())
	g.Expect(refusedBy(policy, plan("plan-writer", "platform", template()))).To(BeTrue())

	both := template()
	both["revision"] = "platform-1"
	g.Expect(apierrors.IsInvalid(plan("plan-editor", "platform", both))).To(BeTrue(), "of both")
	is := addonPlan("team-a", "platform", template())
	g.Expect(s.Create(ctx, is)).To(Succeed())
	for _, change := range []string{`{"spec":{"template":{"x":1}}}`, `{"spec":{"revision":"platform-1","template":null}}`, `{"spec":{"clusterSelector":{}}}`} {
		g.Expect(apierrors.IsInvalid(s.Patch(ctx, is.DeepCopy(), merge(change)))).To(BeTrue(), "its spec changes by %s", change)
	}
	g.Expect(s.Patch(ctx, is.DeepCopy(), merge(`{"metadata":{"labels":{"a":"b"}}}`))).To(Succeed())
}
