// SPDX-License-Identifier: Apache-2.0

package instances

import (
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/audit"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/wait"
)

// downtimeEnv is for how long no webhook runs.
const downtimeEnv = "CHANDLER_WEBHOOKS_DOWN"

// TestWebhooksDown ends all processes of the shared webhooks, while two instances
// run that share a namespace by filter.
func TestWebhooksDown(t *testing.T) {
	long.Test(t)
	t.Parallel()
	g := NewWithT(t)
	downtime := 15 * time.Second
	if text := os.Getenv(downtimeEnv); text != "" {
		var err error
		downtime, err = time.ParseDuration(text)
		g.Expect(err).NotTo(HaveOccurred())
	}
	w := newWorld(t, usual)
	s, other := workload(t, 0), workload(t, 1)
	u := &user{ctx: t.Context(), w: w}
	blue := w.startInstance(overlay{name: "blue", namespaces: []string{"team-a"}, filter: "blue"}, heartbeat(1)...)
	green := w.startInstance(overlay{name: "green", namespaces: []string{"team-a"}, filter: "green"}, heartbeat(1)...)
	addon := w.addonNamespace("team-a")
	g.Expect(u.writeSecret("team-a", 0, "one")).To(Succeed())
	for _, filter := range []string{"blue", "green"} {
		stack := stackNamed("team-a", filter, nil, withSecret(settings("settings", addon, "one"), 0))
		stack.Labels = map[string]string{clusterv1.WatchLabel: filter}
		w.create(stack)
	}
	g.Expect(w.makeCluster(t.Context(), "team-a", "previous", s, map[string]string{clusterv1.WatchLabel: "blue"})).To(Succeed())
	w.awaitInstalled(s, "team-a", "settings", "one/one")
	w.awaitClusterReady("team-a", "previous")
	newcomer := w.install(overlay{name: "new", namespaces: []string{"team-b"}})

	deployment := (*w.webhooks)[0].deployment
	w.killWebhooks()
	begin, ended := w.Audit.Mark(t), time.Now()

	t.Run("stacks can't be written", func(t *testing.T) {
		g := NewWithT(t)
		stack := stackNamed("team-a", "another", nil, settings("another", addon, "one"))
		g.Expect(w.Create(t.Context(), stack)).To(MatchError(ContainSubstring("webhook")), "the API server refuses what can't be checked")
		g.Expect(u.patch(stackNamed("team-a", "blue", nil), map[string]any{"spec": map[string]any{"deletionPolicy": "Orphan"}})).To(MatchError(ContainSubstring("webhook")))
	})
	t.Run("values change", func(t *testing.T) {
		w := w.in(t)
		NewWithT(t).Expect(u.writeSecret("team-a", 0, "two")).To(Succeed())
		w.awaitInstalled(s, "team-a", "settings", "one/two")
		w.awaitClusterReady("team-a", "previous")
	})
	t.Run("a new Cluster gets its add-ons", func(t *testing.T) {
		w := w.in(t)
		g := NewWithT(t)
		g.Expect(w.makeCluster(t.Context(), "team-a", "latter", other, map[string]string{clusterv1.WatchLabel: "blue"})).To(Succeed())
		w.awaitInstalled(other, "team-a", "settings", "one/two")
		w.awaitClusterReady("team-a", "latter")
	})
	t.Run("a Cluster changes hands", func(t *testing.T) {
		w := w.in(t)
		g := NewWithT(t)
		g.Expect(u.label(clusterNamed("team-a", "previous"), clusterv1.WatchLabel, "green")).To(Succeed())
		wait.Until(t, patience, "the other instance takes the ClusterAddon over", func() error { return w.ownedBy("team-a", "previous", "green") })
		w.awaitClusterReady("team-a", "previous")
	})
	t.Run("a new instance waits", func(t *testing.T) {
		newcomer := newcomer.in(t)
		m := newcomer.start(heartbeat(1)...)
		wait.Until(t, patience, "it says what it waits for, in its log: it has no object yet to say it in", func() error {
			return m.Says(addonsv1.WebhookUnavailableReason)
		})
		if m.ready() == nil {
			t.Error("/readyz says it is ready")
		}
	})
	t.Run("nobody else minds", func(t *testing.T) {
		wait.Throughout(t, downtime-time.Since(ended), "instances that run go on", func() error {
			return errors.Join(blue.last().ready(), green.last().ready(), newcomer.last().Running())
		})
		for _, i := range []*instance{blue, green} {
			pi, err := i.registered()
			must.Succeed(t, err)
			if err := active(pi); err != nil {
				t.Error(err)
			}
			if silent := time.Since(pi.Status.HeartbeatTime.Time); silent > expiryOf(1) {
				t.Errorf("instance %s was last heard of %s ago", i.name, silent)
			}
			expectNone(t, begin.Requests(t, both(audit.By(i.user()), audit.Forbidden)), "nothing is asked for that it may not have")
		}
	})

	w.startWebhooks(deployment)
	newcomer.awaitActive("the new instance gets its scope without a restart")
	g.Expect(u.patch(stackNamed("team-a", "blue", nil), map[string]any{"spec": map[string]any{"addons": []addonsv1.Addon{settings("settings", addon, "two")}}})).To(Succeed(), "stacks can be written again")
	w.awaitInstalled(other, "team-a", "settings", "two/none")
	for _, i := range []*instance{blue, green, newcomer} {
		g.Expect(i.last().Running()).To(Succeed(), "all of this without a restart")
	}
}

// ownedBy expects the ClusterAddon to have the label.
func (w *world) ownedBy(namespace, name, filter string) error {
	ca, err := w.clusterAddon(w.t.Context(), namespace, name)
	if err != nil {
		return err
	}
	if got := ca.Labels[clusterv1.WatchLabel]; got != filter {
		return fmt.Errorf("ClusterAddon %s has filter %q", name, got)
	}
	return nil
}
