// SPDX-License-Identifier: Apache-2.0

package webhooks_test

import (
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
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/must"
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
		must.Succeed(t, client.IgnoreAlreadyExists(s.Create(t.Context(), obj)))
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
	own := s.as(t, rest.ImpersonationConfig{UserName: user, Groups: []string{"system:serviceaccounts", "system:authenticated"}})
	for _, name := range readsIn { // once the API server has noticed its rights
		NewWithT(t).Eventually(func() (bool, error) {
			review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
				ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: name, Verb: "list", Group: "cluster.x-k8s.io", Resource: "clusters"},
			}}
			err := own.Create(t.Context(), review)
			return review.Status.Allowed, err
		}, patience, 50*time.Millisecond).Should(BeTrue())
	}
	return &shared{Client: own}
}

func runningIn(namespace string, pi *addonsv1.ProviderInstance) *addonsv1.ProviderInstance {
	pi.Namespace = namespace
	return pi
}

// A scope is for who has rights in all of it.
func TestClaimsNeedRights(t *testing.T) {
	long.InCI(t)
	s := startShared(t)
	one := s.account(t, "chandler-one", "team-a", "team-b", "team-e")
	two := s.account(t, "chandler-two", "team-c")
	all := s.account(t, "chandler-all", "")
	claim := func(c *shared, namespace, name string, namespaces ...string) (*addonsv1.ProviderInstance, error) {
		pi := runningIn(namespace, newInstance(name, namespaces...))
		return pi, c.Create(t.Context(), pi)
	}
	for name, namespaces := range map[string][]string{
		"squat": {"team-c"}, "wide": {"team-a", "team-c"}, "everything": nil, "nowhere": {"not-there-yet"},
	} {
		_, err := claim(one, "chandler-one", name, namespaces...)
		if cause := s.refusal(err); cause == nil || cause.Field != "spec.namespaces" {
			t.Errorf("%s: Create() = %v; want %s", name, err, addonsv1.ScopeForbiddenReason)
		}
	}
	ours, err := claim(one, "chandler-one", "ours", "team-b", "team-a")
	must.Succeed(t, err)
	if _, err := claim(two, "chandler-two", "theirs", "team-c"); err != nil {
		t.Error(err)
	}
	if _, err := claim(all, "chandler-all", "all"); err != nil {
		t.Error("rights in all namespaces are rights in each:", err)
	}
	if err := one.edit(t, ours, func(pi *addonsv1.ProviderInstance) { pi.Spec.Claim = addonsv1.ScopeWaiting }); err != nil {
		t.Error(err)
	}
	err = one.edit(t, ours, func(pi *addonsv1.ProviderInstance) {
		pi.Spec.Holder, pi.Spec.Claim, pi.Spec.Namespaces = "ours-2", addonsv1.ScopeClaiming, []string{"team-a", "team-d"}
	})
	if s.refusal(err) == nil {
		t.Errorf("a scope is changed to what is another's: %v", err)
	}
	if err := two.edit(t, runningIn("chandler-two", newInstance("theirs")), func(pi *addonsv1.ProviderInstance) { pi.Labels = map[string]string{"seen": "yes"} }); err != nil {
		t.Error("a label is no claim:", err)
	}

	foreign := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "chandler-two", Name: "foreign"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "writes-instances"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "chandler-one", Name: "manager"}},
	}
	must.Succeed(t, s.Create(t.Context(), foreign))
	NewWithT(t).Eventually(func() *metav1.StatusCause {
		_, err := claim(one, "chandler-two", "foreign", "team-e")
		return s.refusal(err)
	}, patience, 50*time.Millisecond).Should(HaveValue(HaveField("Field", "metadata.namespace")), "a ServiceAccount claims for its own namespace")
}
