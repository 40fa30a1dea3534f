// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// TestLeader has two replicas of one instance, of which the leader is killed.
func TestLeader(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	tn := newTenant(t)
	s := workloadServer(t, 1)
	replica := []string{
		"--leader-elect", "--leader-elect-namespace=" + tn.namespace,
		"--leader-elect-lease-duration=4s", "--leader-elect-renew-deadline=3s", "--leader-elect-retry-period=500ms",
	}
	leader := tn.startManager(replica...)
	tn.makeCluster("prod", s, labels("env=prod"))
	tn.install(tn.small("settings"))
	tn.settle()
	standby := tn.startManager(replica...)
	var done float64
	poll(t, patience, "the second replica is to wait for the lease", func() (err error) {
		if !bytes.Contains(standby.tail(), []byte("Attempting to acquire leader lease")) {
			return errors.New("it doesn't say so")
		}
		done, err = standby.reconciled("clusteraddon")
		return err
	})
	g.Expect(done).To(BeZero(), "only one replica works")
	mark := s.mark(t)

	leader.kill()
	tn.changeAddon("platform", "settings", func(a *addonsv1.Addon) {
		a.Values = &apiextensionsv1.JSON{Raw: []byte(`{"text": "of the second"}`)}
	})
	tn.awaitReady("platform", "the second replica takes over once the lease has run out")
	settings := tn.configMapOf("settings")
	g.Expect(s.Get(t.Context(), tn.key("settings"), settings)).To(Succeed())
	g.Expect(settings.Data).To(HaveKeyWithValue("text", "of the second"))
	g.Expect(s.release(t, tn.namespace, "settings").revision).To(Equal(2), "it knows what is installed, and makes one revision")
	g.Expect(writes(mark.requests(t, tn.clusterUser("prod")))).NotTo(BeEmpty())
}
