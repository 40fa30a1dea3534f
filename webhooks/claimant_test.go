// SPDX-License-Identifier: Apache-2.0

package webhooks_test

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/instance"
)

const patience = 30 * time.Second

// account is the same world for a ServiceAccount that may write ProviderInstances where it
// runs, and read Clusters in other namespaces; "" is all.
func (s *shared) account(t *testing.T, namespace string, readsIn ...string) *shared {
	t.Helper()
	user := "system:serviceaccount:" + namespace + ":manager"
	subjects := []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: namespace, Name: "manager"}}
	create := func(obj client.Object) {
		t.Helper()
		if err := client.IgnoreAlreadyExists(s.Create(t.Context(), obj)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range append([]string{namespace}, readsIn...) {
		if name != "" {
			create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
		}
	}
	create(&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "writes-instances"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{addonsv1.GroupVersion.Group}, Resources: []string{"providerinstances", "providerinstances/status"}, Verbs: []string{"*"}},
	}})
	create(&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "reads-clusters"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"cluster.x-k8s.io"}, Resources: []string{"clusters"}, Verbs: []string{"get", "list", "watch"}},
	}})
	create(&rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "writes-instances"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "writes-instances"}, Subjects: subjects,
	})
	reads := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "reads-clusters"}
	for _, name := range readsIn {
		if name == "" {
			create(&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "reads-clusters-" + namespace}, RoleRef: reads, Subjects: subjects})
			continue
		}
		create(&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "reads-clusters-" + namespace}, RoleRef: reads, Subjects: subjects})
	}
	config := rest.CopyConfig(s.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:serviceaccounts", "system:authenticated"}}
	own, err := client.New(config, client.Options{Scheme: s.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range readsIn { // once the API server has noticed its rights
		NewWithT(t).Eventually(func() (bool, error) {
			review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
				ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: name, Verb: "list", Group: "cluster.x-k8s.io", Resource: "clusters"},
			}}
			err := own.Create(t.Context(), review)
			return review.Status.Allowed, err
		}, patience, 50*time.Millisecond).Should(BeTrue())
	}
	return &shared{Client: own, clock: s.clock, server: s.server, config: config}
}

func runningIn(namespace string, pi *addonsv1.ProviderInstance) *addonsv1.ProviderInstance {
	pi.Namespace = namespace
	return pi
}

// A scope is for who has rights in all of it.
func TestClaimsNeedRights(t *testing.T) {
	s := startShared(t, 1, nil)
	one := s.account(t, "chandler-one", "team-a", "team-b", "team-e")
	two := s.account(t, "chandler-two", "team-c")
	all := s.account(t, "chandler-all", "")

	one.mustBeRefused(t, runningIn("chandler-one", newInstance("squat", "", "team-c")), instance.ScopeForbidden)
	one.mustBeRefused(t, runningIn("chandler-one", newInstance("wide", "", "team-a", "team-c")), instance.ScopeForbidden)
	one.mustBeRefused(t, runningIn("chandler-one", newInstance("everything", "")), instance.ScopeForbidden)
	refusal := one.mustBeRefused(t, runningIn("chandler-one", newInstance("nowhere", "", "not-there-yet")), instance.ScopeForbidden)
	if refusal.Field != "spec.namespaces" {
		t.Errorf("the refusal is about %s", refusal.Field)
	}
	ours := runningIn("chandler-one", newInstance("ours", "", "team-b", "team-a"))
	one.mustClaim(t, ours)
	two.mustClaim(t, runningIn("chandler-two", newInstance("theirs", "", "team-c")))

	t.Run("a scope isn't changed to what is another's", func(t *testing.T) {
		next := ours.DeepCopy()
		next.Spec.Claim, next.Spec.Namespaces = addonsv1.ScopeClaiming, []string{"team-a", "team-d"}
		if refusal, ok := instance.RefusalOf(one.Update(t.Context(), next)); !ok || refusal.Cause != instance.ScopeForbidden {
			t.Errorf("Update() = %+v; want %s", refusal, instance.ScopeForbidden)
		}
	})
	t.Run("a ServiceAccount claims for its own namespace", func(t *testing.T) {
		foreign := &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: "chandler-two", Name: "foreign"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "writes-instances"},
			Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "chandler-one", Name: "manager"}},
		}
		if err := s.Create(t.Context(), foreign); err != nil {
			t.Fatal(err)
		}
		pi := runningIn("chandler-two", newInstance("foreign", "", "team-e"))
		NewWithT(t).Eventually(func() (*instance.Refusal, error) { return one.claim(t.Context(), pi.DeepCopy()) }, patience, 50*time.Millisecond).
			Should(HaveValue(And(HaveField("Cause", instance.ScopeForbidden), HaveField("Field", "metadata.namespace"))))
	})
	t.Run("rights in all namespaces are rights in each", func(t *testing.T) {
		s.pass(time.Hour)
		pi := runningIn("chandler-all", newInstance("all", ""))
		all.mustClaim(t, pi)
		pi.Spec.Claim = addonsv1.ScopeWaiting
		if err := all.Update(t.Context(), pi); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("an administrator frees a scope by hand", func(t *testing.T) {
		stuck := runningIn("chandler-two", newInstance("stuck", "", "team-c"))
		two.mustClaim(t, stuck)
		stuck.Spec.Claim = addonsv1.ScopeWaiting
		if err := s.Update(t.Context(), stuck); err != nil {
			t.Fatal(err)
		}
		two.mustClaim(t, runningIn("chandler-two", newInstance("next", "", "team-c")))
	})
}

// Who makes and deletes instances can't fill the webhooks' memory.
func TestInstancesOfANamespaceAreFew(t *testing.T) {
	s := startShared(t, 1, nil)
	var all []*addonsv1.ProviderInstance
	for i := range 64 {
		all = append(all, newInstance(fmt.Sprintf("many-%d", i), addonsv1.ScopeClaiming, fmt.Sprintf("team-%d", i)))
		if err := s.Create(t.Context(), all[i]); err != nil {
			t.Fatal(err)
		}
	}
	s.mustBeRefused(t, newInstance("one-more", "", "elsewhere"), instance.TooManyInstances)
	for _, pi := range all {
		if err := s.Delete(t.Context(), pi); err != nil {
			t.Fatal(err)
		}
	}
	s.mustBeRefused(t, newInstance("one-more", "", "elsewhere"), instance.TooManyInstances)
	err := s.Create(t.Context(), newInstance("waiting", addonsv1.ScopeWaiting, "elsewhere"))
	if refusal, ok := instance.RefusalOf(err); !ok || refusal.Cause != instance.TooManyInstances {
		t.Errorf("Create() = %v; want %s", err, instance.TooManyInstances)
	}
	s.pass(time.Minute)
	s.mustClaim(t, newInstance("one-more", "", "team-0"))

	pi := newInstance("long", addonsv1.ScopeWaiting)
	pi.Spec.ExpirySeconds = 301
	if err := s.Create(t.Context(), pi); err == nil {
		t.Error("an expiry of more than five minutes is taken")
	}
}
