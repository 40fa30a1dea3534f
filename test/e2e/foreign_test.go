// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/long"
)

// TestLostRecord deletes what Chandler installed behind its back, as "helm
// uninstall" does.
func TestLostRecord(t *testing.T) {
	t.Parallel()
	tn, s := newProd(t, 1)
	tn.install(tn.small("settings"))
	tn.settle()
	before := tn.configMapOf("settings")
	tn.Expect(s.Get(t.Context(), tn.key("settings"), before)).To(Succeed())
	tn.Expect(s.Delete(t.Context(), before)).To(Succeed())
	record := &corev1.Secret{ObjectMeta: tn.named("sh.helm.release.v1.settings.v1")}
	tn.Expect(s.Delete(t.Context(), record)).To(Succeed())
	poll(t, patience, "an add-on that somebody uninstalled with Helm is to be installed again", func() error {
		now := tn.configMapOf("settings")
		if err := s.Get(t.Context(), tn.key("settings"), now); err != nil {
			return err
		}
		if now.UID == before.UID {
			return errors.New("it is the old object")
		}
		return nil
	})
	tn.awaitReady("platform", "and ready")
}

// TestDriftOverRestarts restarts the API server of a workload cluster again and again, and
// changes objects as soon as it is back, before any watch is.
func TestDriftOverRestarts(t *testing.T) {
	long.Test(t)
	t.Parallel()
	restarts := environmentNumber(t, "CHANDLER_RESTARTS", 3)
	tn, s := newProd(t, 17) // the server is nobody else's
	// Each restart has objects of its own: what is changed again and again is a fight.
	path := tn.writeChart("settings", "1.0.0", chart{"templates/all.yaml": fmt.Sprintf("{{ range $i := until %d }}\n---\n%s{{ end }}", restarts, configMap("{{ $.Release.Name }}-{{ $i }}", "default"))})
	tn.install(tn.addon("changed", path), tn.addon("deleted", path), tn.addon("untouched", path))
	object := func(addon string, i int) *corev1.ConfigMap {
		o := &corev1.ConfigMap{ObjectMeta: tn.named(fmt.Sprintf("%s-%d", addon, i))}
		return o
	}
	untouched := object("untouched", 0)
	tn.Expect(s.Get(t.Context(), client.ObjectKeyFromObject(untouched), untouched)).To(Succeed())
	text := untouched.Data["text"]
	var longest time.Duration
	for i := range restarts {
		tn.Expect(s.StopAPIServer()).To(Succeed())
		tn.Expect(s.StartAPIServer(t.Context())).To(Succeed())
		began := time.Now()
		tn.Expect(s.Delete(t.Context(), object("deleted", i))).To(Succeed())
		tn.Expect(s.Patch(t.Context(), object("changed", i), client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"data":{"text":"mine %d"}}`, i)), client.FieldOwner("kubectl"))).To(Succeed())
		for _, name := range []string{"deleted", "changed"} {
			await(t, s, object(name, i), patience, "it is to be set right", func(o *corev1.ConfigMap) error {
				if o.Data["text"] != text {
					return fmt.Errorf("%v", o.Data)
				}
				return nil
			})
		}
		longest = max(longest, time.Since(began))
	}
	t.Logf("%d restarts; repaired after %s at most", restarts, longest.Round(time.Millisecond))
	now := object("untouched", 0)
	tn.Expect(s.Get(t.Context(), client.ObjectKeyFromObject(now), now)).To(Succeed())
	tn.Expect(now.UID).To(Equal(untouched.UID))
	tn.Expect(now.ResourceVersion).To(Equal(untouched.ResourceVersion), "nothing was written to what nobody changed")
	tn.awaitCluster("prod", "all is well", ready("changed", "deleted", "untouched"), func(ca *addonsv1.ClusterAddon) error {
		if d := statusOf(ca, "untouched").Drift; d != nil {
			return fmt.Errorf("%+v", d)
		}
		return nil
	})
}
