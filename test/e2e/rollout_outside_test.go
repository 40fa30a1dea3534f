// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/reasons"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/must"
)

// awaitHalt waits until so many clusters failed with the values of their Secrets, and the rest waits. Those that wait have
// what they had. It returns those that failed.
func (r *rolling) awaitHalt(wanted int, reason string) (failed []string) {
	r.t.Helper()
	poll(r.t, patience, reason, func() error {
		failed = nil
		all := &addonsv1.ClusterAddonList{}
		must.Succeed(r.t, world.hub.List(r.t.Context(), all, client.InNamespace(r.namespace)))
		for i := range all.Items {
			ca := &all.Items[i]
			if phase("settings", addonsv1.AddonFailed, "", "")(ca) == nil {
				failed = append(failed, ca.Name)
			} else if err := phase("settings", addonsv1.AddonReady, reasons.WaitingForOtherClusters, addonsv1.ReconcileNowAnnotation)(ca); err != nil {
				return fmt.Errorf("%s: %w", ca.Name, err)
			}
		}
		if len(failed) != wanted {
			return fmt.Errorf("%v failed, not %d", failed, wanted)
		}
		return nil
	})
	for name := range r.clients {
		if !slices.Contains(failed, name) {
			r.Expect(r.textOn(name, "settings")).To(Equal("mine"), name+": "+reason)
		}
	}
	return failed
}

// setOwnValues changes the values in the Secret of each cluster.
func (r *rolling) setOwnValues(text string) {
	r.t.Helper()
	for name := range r.clients {
		change(r.tenant, r.secret(name+"-values", nil), func(s *corev1.Secret) { s.Data = map[string][]byte{"values.yaml": []byte(text)} })
	}
}

// setText gives a Cluster a label that the add-on takes its text from.
func (r *rolling) setText(cluster, text string) {
	r.t.Helper()
	change(r.tenant, &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: cluster}}, func(c *clusterv1.Cluster) { c.Labels["text"] = text })
}

// TestInputsOutsideOfRevisions has a program write wrong values into the Secrets of all clusters, which no revision has. One
// cluster gets them, and no other one until a person acts, through a restart too. A label of one Cluster is delivered at
// once, and one of all Clusters to all of them.
func TestInputsOutsideOfRevisions(t *testing.T) {
	long.InCI(t)
	t.Parallel()
	r := newRolling(t, "outside", 10)
	var all []string
	for name := range r.clients {
		all = append(all, name)
		r.create(r.secret(name+"-values", map[string]string{"values.yaml": "text: mine"}))
	}
	r.changeStack("platform", func(spec *addonsv1.AddonStackSpec) {
		spec.Addons[0].ValuesFrom = fromSecrets("{{ .Cluster.metadata.name }}-values")
		spec.Addons[0].ValuesTemplate = `{{ with index .Cluster.metadata.labels "text" }}text: {{ . }}{{ end }}`
		spec.Rollout = &addonsv1.Rollout{MaxConcurrent: ofNumber(1), MinReady: &metav1.Duration{}}
	})
	r.awaitPhase(addonsv1.RolloutCompleted, 10, "each cluster has values of its own")
	r.awaitTextOn(all, "mine", "each cluster has values of its own")

	r.setOwnValues("text: wrong\nbad: true")
	first := r.awaitHalt(1, "one cluster gets what is wrong")
	r.settle()
	r.restart()
	r.settle()
	r.Expect(r.awaitHalt(1, "a restart lets no other cluster begin")).To(Equal(first))

	at := slices.IndexFunc(all, func(name string) bool { return name != first[0] })
	r.annotate(&addonsv1.ClusterAddon{}, all[at], addonsv1.ReconcileNowAnnotation, "now")
	r.Expect(r.awaitHalt(2, "a person lets one pass")).To(ContainElements(first[0], all[at]))
	r.changeStack("platform", func(spec *addonsv1.AddonStackSpec) { spec.Rollout.MaxFailed = ofNumber(2) })
	r.awaitHalt(3, "two may fail, the third is one too many")

	r.setOwnValues("text: right")
	r.awaitTextOn(all, "right", "all get the correction")
	r.awaitReady("platform", "all are well")
	r.changeStack("platform", func(spec *addonsv1.AddonStackSpec) { spec.Rollout.MaxFailed = nil })
	r.setText(all[0], "own")
	r.awaitTextOn(all[:1], "own", "one cluster gets its change at once")
	for _, name := range all {
		r.setText(name, "label")
	}
	r.awaitTextOn(all, "label", "all get theirs")
	r.awaitReady("platform", "all are well")
	r.settle()
	for _, name := range all {
		ca := r.awaitCluster(name, "it is as wanted", ready("settings"))
		r.Expect(statusOf(ca, "settings").Reason).To(BeEmpty())
		r.Expect(ca.Status.Stacks[0].InputsChanged.IsZero()).To(BeTrue(), "it has ended")
	}
}
