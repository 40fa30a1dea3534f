// SPDX-License-Identifier: Apache-2.0

package instances

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/apiserver"
	"github.com/cluster-chandler/chandler/test/audit"
	"github.com/cluster-chandler/chandler/test/must"
)

// TestIsolation has two instances, and does with the token of one what it never does
// itself.
func TestIsolation(t *testing.T) {
	t.Parallel()
	w := newWorld(t, usual)
	s := workload(t, 2)
	begin := s.Audit.Mark(t)
	one := w.startInstance(overlay{name: "one", namespaces: []string{"team-a"}})
	two := w.startInstance(overlay{name: "two", namespaces: []string{"team-b"}})
	for _, namespace := range []string{"team-a", "team-b"} {
		w.installSettings(s, namespace, "secluded")
	}

	t.Run("in a normal run nothing is refused", func(t *testing.T) {
		events := w.Audit.Beginning().Requests(t, func(*event) bool { return true })
		for _, user := range []string{one.user(), two.user(), (*w.webhooks)[0].user()} {
			seen := 0
			for i := range events {
				if audit.By(user)(&events[i]) {
					seen++
				}
			}
			if seen == 0 {
				t.Errorf("%s made no request: this test looks at the wrong user", user)
			}
			expectNone(t, w.Audit.Beginning().Requests(t, both(audit.By(user), audit.Forbidden)), "no instance asks for what it may not have")
		}
		j := newEvaluate(w, events, one, two)
		j.management(events)
		j.versions = map[string]*instance{defaultVersion: one}
		j.workload(begin.Requests(t, func(e *event) bool { return wrote(e) && e.User.Username == w.clusterUser("team-a", "secluded") }))
		if len(j.verdicts) > 0 || j.evaluated == 0 {
			t.Errorf("of %d writes, these are out of scope:\n%s", j.evaluated, lines(j.verdicts))
		}
	})

	kubeconfig, err := clientcmd.RESTConfigFromKubeConfig(one.last().kubeconfig())
	must.Succeed(t, err)
	token, err := client.New(kubeconfig, client.Options{Scheme: apiserver.Scheme()})
	must.Succeed(t, err)
	ctx := t.Context()
	secret, cluster := &corev1.Secret{}, &clusterv1.Cluster{}
	t.Run("its own namespace is its to read", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(token.Get(ctx, client.ObjectKey{Namespace: "team-a", Name: "secluded-kubeconfig"}, secret)).To(Succeed(), "this token works")
		g.Expect(token.Get(ctx, client.ObjectKey{Namespace: "team-a", Name: "secluded"}, cluster)).To(Succeed())
	})
	for name, ask := range map[string]func() error{
		"a Secret elsewhere": func() error {
			return token.Get(ctx, client.ObjectKey{Namespace: "team-b", Name: "secluded-kubeconfig"}, secret)
		},
		"Secrets elsewhere": func() error { return token.List(ctx, &corev1.SecretList{}, client.InNamespace("team-b")) },
		"all Secrets":       func() error { return token.List(ctx, &corev1.SecretList{}) },
		"the webhooks' key": func() error { return token.List(ctx, &corev1.SecretList{}, client.InNamespace("chandler-webhooks")) },
		"a Cluster elsewhere": func() error {
			return token.Get(ctx, client.ObjectKey{Namespace: "team-b", Name: "secluded"}, cluster)
		},
		"Clusters elsewhere": func() error { return token.List(ctx, &clusterv1.ClusterList{}, client.InNamespace("team-b")) },
		"all Clusters":       func() error { return token.List(ctx, &clusterv1.ClusterList{}) },
		"a ClusterAddon elsewhere": func() error {
			ca := &addonsv1.ClusterAddon{}
			ca.Namespace, ca.Name = "team-b", "secluded"
			return token.Patch(ctx, ca, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"a":"b"}}}`)))
		},
		"another instance's registration": func() error {
			return token.List(ctx, &addonsv1.ProviderInstanceList{}, client.InNamespace(two.namespace))
		},
		"writing a Secret of its own namespace": func() error {
			return token.Create(ctx, &corev1.Secret{ObjectMeta: clusterNamed("team-a", "new").ObjectMeta})
		},
		"writing a Cluster of its own namespace": func() error {
			return token.Delete(ctx, clusterNamed("team-a", "secluded"))
		},
		"more rights": func() error {
			return token.Create(ctx, roleThatReadsSecrets("team-a"))
		},
	} {
		t.Run("denied: "+name, func(t *testing.T) {
			err := ask()
			NewWithT(t).Expect(apierrors.IsForbidden(err)).To(BeTrue(), "the API server is to deny it: %v", err)
		})
	}
	t.Run("denied: the scope of an instance that isn't there yet", func(t *testing.T) {
		squatter := &addonsv1.ProviderInstance{
			ObjectMeta: metav1.ObjectMeta{Namespace: one.namespace, Name: "squatter"},
			Spec: addonsv1.ProviderInstanceSpec{
				Namespaces: []string{"team-c"}, Version: "v0", APIVersions: []string{"v1beta1"}, Holder: "squatter", Claim: addonsv1.ScopeClaiming, ExpirySeconds: 300,
			},
		}
		g := NewWithT(t)
		g.Expect(apierrors.HasStatusCause(token.Create(ctx, squatter), addonsv1.ScopeForbiddenReason)).To(BeTrue())
	})
}

func roleThatReadsSecrets(namespace string) *rbacv1.Role {
	return &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "more"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"*"}}},
	}
}
