// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"
	"sigs.k8s.io/multicluster-runtime/providers/kubeconfig"

	"github.com/cluster-chandler/chandler/fleet/fleettest"
	"github.com/cluster-chandler/chandler/fleet/secrets"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/must"
)

// TestConformance has multicluster-runtime's own cases for its kubeconfig provider pass with
// ours, with and without a cluster that never lists. How its provider fares is printed beside it.
func TestConformance(t *testing.T) {
	long.Test(t)
	for _, dead := range []bool{false, true} {
		t.Run(fmt.Sprintf("dead cluster %t", dead), func(t *testing.T) {
			ours := conform(t, oursUnderTest, dead)
			theirs := conform(t, theirsUnderTest, dead)
			var table strings.Builder
			for i, result := range ours {
				if result.Err != nil {
					t.Errorf("%s: %v", result.Case, result.Err)
				}
				fmt.Fprintf(&table, "%-50s ours %-5t multicluster-runtime's %t\n", result.Case, result.Err == nil, theirs[i].Err == nil)
			}
			t.Log("\n" + table.String())
		})
	}
}

func conform(t *testing.T, of func(*hub) fleettest.Subject, dead bool) []fleettest.Result {
	t.Helper()
	h := newHub(t)
	servers := fleettest.Servers{
		Local: h.config, First: h.workload.Config(), Second: h.other.Config(), Patience: 5 * time.Second,
	}
	if dead {
		servers.Dead = fleettest.Start(t, fleettest.Misbehaviours("/api/v1/configmaps")["hangs"]).Kubeconfig(t)
	}
	results, err := fleettest.Conform(t.Context(), "conform-"+utilrand.String(5), of(h), servers)
	must.Succeed(t, err)
	return results
}

func oursUnderTest(h *hub) fleettest.Subject {
	source := secrets.New(secrets.Options{Match: func(labels map[string]string) bool { return labels["of"] == h.namespace }})
	return h.bySecrets(provider(source, h.memberName))
}

func theirsUnderTest(h *hub) fleettest.Subject {
	p := kubeconfig.New(kubeconfig.Options{Namespace: h.namespace, KubeconfigSecretLabel: secrets.DefaultLabel})
	return h.bySecrets(fleettest.Subject{
		Provider: p, Setup: p.SetupWithManager, ClusterName: func(name string) multicluster.ClusterName { return multicluster.ClusterName(name) },
	})
}

// bySecrets has a provider be told of clusters by Secrets.
func (h *hub) bySecrets(s fleettest.Subject) fleettest.Subject {
	secret := func(name string, data []byte) *corev1.Secret {
		return &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: name, Labels: map[string]string{secrets.DefaultLabel: "true", "of": h.namespace}},
			Data:       map[string][]byte{secrets.DefaultKey: data},
		}
	}
	s.Add = func(ctx context.Context, name string, data []byte) error {
		return store(ctx, h.Client, secret(name, data))
	}
	s.Remove = func(ctx context.Context, name string) error { return h.Delete(ctx, secret(name, nil)) }
	return s
}
