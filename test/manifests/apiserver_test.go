// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-chandler/chandler/test/controlplane"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/must"
)

// TestAPIServer has a real API server take all overlays, and then asks it what their ServiceAccounts, and people, may do.
func TestAPIServer(t *testing.T) {
	long.InCI(t)
	g := NewWithT(t)
	cp, err := controlplane.Start(t.Context(), controlplane.Options{Name: "manifests", Workers: true}) // which aggregate ClusterRoles
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { g.Expect(cp.Stop()).To(Succeed()) })
	c, err := client.New(cp.Config(), client.Options{})
	g.Expect(err).NotTo(HaveOccurred())
	for _, namespace := range []string{"team-a", "team-b", "team-c", "team-d"} {
		g.Expect(c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})).To(Succeed())
	}
	s := server{t: t, Client: c, config: cp.Config()}
	s.apply(shared)
	for path := range instances {
		s.apply(path)
	}
	t.Run("rights of instances", func(t *testing.T) { rightsOfInstances(s.in(t)) })
	t.Run("rights of the webhooks", func(t *testing.T) { rightsOfWebhooks(s.in(t)) })
	t.Run("spec of ClusterAddons", func(t *testing.T) { specOfClusterAddons(s.in(t)) })
	t.Run("plans of templates", func(t *testing.T) { plansOfTemplates(s.in(t)) })
	t.Run("rights of people", func(t *testing.T) { rightsOfPeople(s.in(t)) })
	s.apply(allInOne)
	t.Run("rights of all in one", func(t *testing.T) {
		s := s.in(t)
		s.user = "system:serviceaccount:chandler-system:chandler-manager"
		s.may("list secrets", "patch clusteraddons/status -n team-a", "list addonstacks", "create leases -n chandler-system")
		s.mayNot("create secrets -n team-a", "update secrets -n chandler-system", "delete clusters -n team-a", "create leases -n team-a", "patch addonstacks -n team-a",
			"list clusterprofiles.multicluster.x-k8s.io", "patch customresourcedefinitions addonstacks.addons.cluster.x-k8s.io")
		NewWithT(t).Expect(s.as(s.user).Create(t.Context(), clusterAddon("team-a", "all", "platform"), client.DryRunAll)).To(Succeed())
	})
}

func rightsOfInstances(s server) {
	s.user = "system:serviceaccount:chandler-red:chandler-manager-red"
	s.may("list clusters -n team-a", "get secrets -n team-a", "patch clusteraddons -n team-a", "get dockermachines.infrastructure.cluster.x-k8s.io -n team-a",
		"create leases -n chandler-red", "create providerinstances -n chandler-red", "patch providerinstances/status -n chandler-red", "create tokenreviews")
	s.mayNot("get secrets -n team-b", "list clusters -n team-b", "get secrets -n chandler-red", "get secrets -n chandler-blue", "list secrets", "list clusters",
		"update secrets -n team-a", "delete clusters -n team-a", "create leases -n team-a", "create providerinstances -n team-a", "create providerinstances -n chandler-blue",
		"list providerinstances", "list customresourcedefinitions", "list namespaces", "list clusterprofiles.multicluster.x-k8s.io -n team-a",
		"assign clusteraddons/spec -n team-b")

	s.user = "system:serviceaccount:chandler-green:chandler-manager-green"
	s.may("list clusters -n team-c", "list clusters -n team-d", "watch secrets -n team-c", "watch secrets -n team-d")
	s.mayNot("list clusters -n team-a", "list clusters")

	s.user = "system:serviceaccount:chandler-violet:chandler-manager-violet"
	s.may("list clusters", "list secrets", "patch clusteraddons/status -n team-a")
	s.mayNot("create providerinstances -n team-a", "create secrets -n team-a", "list providerinstances")

	s.user = "system:serviceaccount:chandler-instance:chandler-manager"
	s.may("list clusters -n chandler-instance", "get secrets -n chandler-instance")
	s.mayNot("list clusters", "list clusters -n team-a", "get secrets -n chandler-webhooks")
}

func rightsOfWebhooks(s server) {
	s.user = "system:serviceaccount:chandler-webhooks:chandler-manager"
	s.may("list providerinstances", "watch providerinstances", "patch providerinstances/status -n chandler-red", "list addonstacks", "list clusters")
	s.mayNot("list secrets", "get secrets -n team-a", "get secrets -n chandler-webhooks", "create secrets -n chandler-webhooks", "get clusters -n team-a", "patch clusters -n team-a",
		"patch addonstacks -n team-a", "patch addonstacks/status -n team-a", "patch clusteraddons -n team-a", "update providerinstances -n chandler-red", "delete providerinstances -n chandler-red",
		"get customresourcedefinitions addonstacks.addons.cluster.x-k8s.io", "patch customresourcedefinitions addonstacks.addons.cluster.x-k8s.io", "patch validatingwebhookconfigurations chandler-validating-webhook-configuration")
}

// rightsOfPeople is about the roles for people: parts of the built-in ones, and those that confirm removals, and approve
// rollouts.
func rightsOfPeople(s server) {
	for user, role := range map[string]string{"viewer": "view", "editor": "edit", "owner": "admin", "confirmer": "chandler-removal-confirmer-role", "approver": "chandler-rollout-approver-role"} {
		s.bind(user, "team-b", role)
	}
	s.user = "owner"
	NewWithT(s.t).Eventually(func() bool {
		return s.allowed("delete addonstacks -n team-b") && s.allowed("watch providerinstances -n team-b")
	}, patience, "200ms").
		Should(BeTrue(), "roles are aggregated")
	reads := []string{"list addonstacks -n team-b", "watch addonstacks -n team-b", "get addonstacks/status -n team-b", "list clusteraddons -n team-b", "get providerinstances -n team-b"}
	edits := []string{"create addonstacks -n team-b", "update addonstacks -n team-b", "patch addonstacks -n team-b", "delete addonstacks -n team-b"}
	confirms, approves := []string{"patch clusteraddons -n team-b"}, []string{"patch controllerrevisions -n team-b"}
	plans := []string{"create addonplans -n team-b", "delete addonplans -n team-b"}
	never := []string{
		"patch addonplans/status -n team-b",
		"create clusteraddons -n team-b", "update clusteraddons -n team-b", "delete clusteraddons -n team-b", "assign clusteraddons/spec -n team-b",
		"patch addonstacks/status -n team-b", "patch clusteraddons/status -n team-b", "patch providerinstances -n team-b", "list addonstacks -n team-a", "list addonstacks",
	}
	for user, rights := range map[string]struct{ has, lacks []string }{
		"viewer":    {reads, slices.Concat(edits, confirms, approves, plans)},
		"editor":    {slices.Concat(reads, edits, plans), slices.Concat(confirms, approves)},
		"owner":     {slices.Concat(reads, edits, plans), slices.Concat(confirms, approves)},
		"confirmer": {slices.Concat(confirms, []string{"get clusteraddons -n team-b"}), slices.Concat(edits, approves, plans, []string{"list addonstacks -n team-b"})},
		"approver":  {slices.Concat(approves, plans, []string{"get addonstacks -n team-b"}), slices.Concat(edits, confirms)},
	} {
		s.user = user
		s.may(rights.has...)
		s.mayNot(slices.Concat(rights.lacks, never)...)
	}
}

// server asks about one user.
type server struct {
	client.Client
	config *rest.Config
	t      *testing.T
	user   string
}

func (s server) in(t *testing.T) server { return server{t: t, Client: s.Client, config: s.config} }

// apply has the API server take all objects but those of cert-manager's kinds, which it
// doesn't know, and no field that it doesn't know. The Deployment's pods must be
// admitted, too, where they are to run.
func (s server) apply(path string) {
	s.t.Helper()
	objects := build(s.t, path)
	for _, o := range objects {
		if o.GroupVersionKind().Group == "cert-manager.io" {
			continue
		}
		if err := s.Patch(s.t.Context(), o, client.Apply, client.FieldOwner("test"), client.ForceOwnership, client.FieldValidation("Strict")); err != nil { //nolint:staticcheck // these objects have no typed apply
			s.t.Errorf("%s: %s %s: %v", path, o.GetKind(), o.GetName(), err)
		}
	}
	deployment := one[appsv1.Deployment](s.t, objects, "Deployment")
	pod := &corev1.Pod{Spec: deployment.Spec.Template.Spec}
	pod.Namespace, pod.GenerateName, pod.Labels = deployment.Namespace, deployment.Name+"-", deployment.Spec.Template.Labels
	if err := s.Create(s.t.Context(), pod, client.DryRunAll, client.FieldValidation("Strict")); err != nil {
		s.t.Errorf("%s: the pod isn't admitted: %v", path, err)
	}
	pod.Spec.HostNetwork, pod.ResourceVersion = true, ""
	if err := s.Create(s.t.Context(), pod, client.DryRunAll); err == nil || !strings.Contains(err.Error(), "PodSecurity") {
		s.t.Errorf("%s: a pod with more rights is to be refused in namespace %s: %v", path, deployment.Namespace, err)
	}
}

func (s server) may(what ...string)    { s.t.Helper(); s.check(true, what) }
func (s server) mayNot(what ...string) { s.t.Helper(); s.check(false, what) }

func (s server) check(want bool, questions []string) {
	s.t.Helper()
	for _, question := range questions {
		if got := s.allowed(question); got != want {
			s.t.Errorf("%s: may %s? %v", s.user, question, got)
		}
	}
}

// allowed asks the API server, as `kubectl auth can-i` does.
func (s server) allowed(question string) bool {
	s.t.Helper()
	review := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"user": s.user, "groups": []any{"system:serviceaccounts", "system:authenticated"}, "resourceAttributes": attributes(question),
	}}}
	review.SetAPIVersion(authorizationv1.SchemeGroupVersion.String())
	review.SetKind("SubjectAccessReview")
	must.Succeed(s.t, s.Create(s.t.Context(), review))
	allowed, _, _ := unstructured.NestedBool(review.Object, "status", "allowed")
	return allowed
}

// groups of the resources that are asked about.
var groups = map[string]string{
	"clusters": "cluster.x-k8s.io", "addonplans": "addons.cluster.x-k8s.io", "addonstacks": "addons.cluster.x-k8s.io", "clusteraddons": "addons.cluster.x-k8s.io", "providerinstances": "addons.cluster.x-k8s.io",
	"leases": "coordination.k8s.io", "tokenreviews": "authentication.k8s.io", "controllerrevisions": "apps", "customresourcedefinitions": "apiextensions.k8s.io",
	"validatingwebhookconfigurations": "admissionregistration.k8s.io",
}

// attributes of "verb resource[/subresource][.group] [name] [-n namespace]".
func attributes(question string) map[string]any {
	words, namespace, _ := strings.Cut(question, " -n ")
	fields := strings.Fields(words)
	resource, subresource, _ := strings.Cut(fields[1], "/")
	group := groups[resource]
	if name, own, ok := strings.Cut(resource, "."); ok {
		resource, group = name, own
	}
	result := map[string]any{"verb": fields[0], "group": group, "resource": resource, "subresource": subresource, "namespace": namespace}
	if len(fields) > 2 {
		result["name"] = fields[2]
	}
	return result
}
