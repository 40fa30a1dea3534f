// SPDX-License-Identifier: Apache-2.0

package instances

import (
	"errors"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/audit"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/wait"
)

// watched are the kinds that an instance watches in its scope.
var watched = []string{"clusters", "addonplans", "addonstacks", "clusteraddons", "controllerrevisions", "secrets", "configmaps"}

// TestOverlap has instances that want what another one has.
func TestOverlap(t *testing.T) {
	long.Test(t)
	t.Parallel()
	w := newWorld(t, usual)
	const long, beat = 5, 2 // an instance that is waited for should it die, and others
	first := w.startInstance(overlay{name: "first", namespaces: []string{"team-a"}}, heartbeat(long)...)
	s := workload(t, 0)
	w.installSettings(s, "team-a", "wanted")
	installed := s.Audit.Mark(t)
	untouched := func(g Gomega) {
		g.Expect(described(installed.Requests(t, both(audit.By(w.clusterUser("team-a", "wanted")), wrote)))).To(BeEmpty(), "who manages a cluster is no business of that cluster")
	}

	for _, o := range []overlay{
		{name: "same", namespaces: []string{"team-a"}},
		{name: "more", namespaces: []string{"team-a", "team-b"}},
		{name: "all"},
		{name: "part", namespaces: []string{"team-a"}, filter: "blue"},
		{name: "everywhere", filter: "blue"},
	} {
		t.Run("refused: "+o.name, func(t *testing.T) {
			w := w.in(t)
			g := NewWithT(t)
			begin := w.Audit.Mark(t)
			second := w.install(o)
			process := second.start(heartbeat(1)...)
			refused := second.awaitRegistered("an instance that overlaps another one is to say who has the scope",
				waiting(addonsv1.ScopeHeldCondition, addonsv1.ScopeTakenReason, "chandler-first/", "team-a", defaultVersion))
			wait.Throughout(t, 3*time.Second, "it stays alive, isn't ready, and doesn't flap", func() error {
				if err := process.Running(); err != nil {
					return err
				}
				if process.ready() == nil {
					return errors.New("/readyz says it is ready")
				}
				now, err := second.registered()
				if err != nil {
					return err
				}
				return unmoved(refused, now)
			})
			now, err := second.registered()
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(now.Status.HeartbeatTime.Time).To(BeTemporally(">", refused.Status.HeartbeatTime.Time), "it says that it is alive")
			g.Expect(described(begin.Requests(t, both(audit.By(second.user()), reads(watched...))))).To(BeEmpty(), "it looks at nothing that isn't its own")
			expectNone(t, begin.Requests(t, both(audit.By(second.user()), audit.Forbidden)), "and asks for nothing it may not have")

			holder, err := first.registered()
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(active(holder)).To(Succeed(), "the first one isn't disturbed")
			process.stop()
			g.Expect(second.gone()).To(Succeed(), "it takes its ProviderInstance along")
		})
	}

	t.Run("no overlap", func(t *testing.T) {
		w := w.in(t)
		other := w.startInstance(overlay{name: "other", namespaces: []string{"team-b"}}, heartbeat(1)...)
		other.awaitActive("an instance of another namespace has nothing to wait for")
		other.last().stop()
	})

	t.Run("kubectl get pi", func(t *testing.T) {
		w := w.in(t)
		g := NewWithT(t)
		second := w.install(overlay{name: "green", namespaces: []string{"team-a"}, filter: "green"})
		second.start(heartbeat(1)...)
		second.awaitRegistered("it is refused", waiting(addonsv1.ScopeHeldCondition, addonsv1.ScopeTakenReason))
		table := w.kubectlGet(t, "pi", "-A")
		g.Expect(table[0]).To(Equal([]string{"NAMESPACE", "NAME", "SCOPE", "FILTER", "VERSION", "CLUSTERS", "READY", "UNMANAGED", "OK", "AGE", "MESSAGE"}))
		rows := map[string][]string{}
		for _, row := range table[1:] {
			rows[row[0]] = row
		}
		g.Expect(rows).To(HaveLen(2))
		// Cells without a value leave no word.
		g.Expect(rows["chandler-first"][2:7]).To(Equal([]string{"team-a", defaultVersion, "1", "1", "True"}))
		g.Expect(rows["chandler-green"][2:6]).To(Equal([]string{"team-a", "green", defaultVersion, "False"}))
		second.last().stop()
	})

	second := w.install(overlay{name: "second", namespaces: []string{"team-a"}})
	t.Run("the first one ends", func(t *testing.T) {
		second := second.in(t)
		g := NewWithT(t)
		second.start(heartbeat(beat)...)
		second.awaitRegistered("it is refused at first", waiting(addonsv1.ScopeHeldCondition, addonsv1.ScopeTakenReason))
		first.last().stop()
		ended := time.Now()
		g.Expect(first.gone()).To(Succeed(), "an instance that ends takes its ProviderInstance along")
		second.awaitActive("the next one takes over by itself")
		t.Logf("taken over after %s", time.Since(ended).Round(time.Millisecond))
		g.Expect(time.Since(ended)).To(BeNumerically("<", expiryOf(long)/2), "and doesn't wait for any expiry")
		untouched(g)
	})

	third := w.install(overlay{name: "third", namespaces: []string{"team-a", "team-b"}})
	t.Run("the next one is killed", func(t *testing.T) {
		second, third := second.in(t), third.in(t)
		g := NewWithT(t)
		third.start(heartbeat(beat)...)
		third.awaitRegistered("it is refused at first", waiting(addonsv1.ScopeHeldCondition, addonsv1.ScopeTakenReason, "chandler-second/"))
		second.last().Kill()
		last, err := second.registered()
		g.Expect(err).NotTo(HaveOccurred())
		third.awaitActive("it takes over once the heartbeat has expired")
		after := time.Since(last.Status.HeartbeatTime.Time)
		t.Logf("taken over %s after the last heartbeat", after.Round(time.Millisecond))
		g.Expect(after).To(BeNumerically(">=", expiryOf(beat)), "not a moment before: the other one might be alive, and just not be heard")
		second.awaitRegistered("the dead one is shown as dead", func(pi *addonsv1.ProviderInstance) error {
			return hasCondition(pi, addonsv1.ReadyCondition, "Unknown", addonsv1.HeartbeatExpiredReason)
		})
		untouched(g)
	})

	t.Run("a replica is killed", func(t *testing.T) {
		third := third.in(t)
		g := NewWithT(t)
		leader := third.last()
		before, err := third.registered()
		g.Expect(err).NotTo(HaveOccurred())
		standby := third.start(heartbeat(beat)...)
		wait.Until(t, patience, "the second replica is to wait for the lease", func() error { return standby.Says("Attempting to acquire leader lease") })
		leader.Kill()
		after := third.awaitRegistered("the other replica continues with the same ProviderInstance", func(pi *addonsv1.ProviderInstance) error {
			if pi.Spec.Holder == before.Spec.Holder {
				return fmt.Errorf("the holder is still %s", pi.Spec.Holder)
			}
			return active(pi)
		})
		g.Expect(after.UID).To(Equal(before.UID))
		wait.Until(t, patience, "it is ready", standby.ready)
		untouched(g)
	})
}
