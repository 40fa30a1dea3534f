// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/rollout"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/must"
)

// clientFor returns a client for a kubeconfig.
func clientFor(t *testing.T, kubeconfig []byte) client.Client {
	t.Helper()
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	must.Succeed(t, err)
	c, err := client.New(config, client.Options{})
	must.Succeed(t, err)
	return c
}

// textOn returns the text in a ConfigMap of a cluster.
func (r *rolling) textOn(cluster, name string) string {
	r.t.Helper()
	found := &corev1.ConfigMap{}
	must.Succeed(r.t, r.clients[cluster].Get(r.t.Context(), r.key(name), found))
	return found.Data["text"]
}

// awaitTextOn waits until the add-on of clusters has a text.
func (r *rolling) awaitTextOn(clusters []string, text, reason string) {
	r.t.Helper()
	poll(r.t, patience, reason, func() error {
		for _, name := range clusters {
			if is := r.textOn(name, "settings"); is != text {
				return fmt.Errorf("%s has %q, not %q", name, is, text)
			}
		}
		return nil
	})
}

// setValues changes the values in the Secret.
func (r *rolling) setValues(text string) {
	r.t.Helper()
	change(r.tenant, r.secret("inputs", nil), func(s *corev1.Secret) { s.Data = map[string][]byte{"values.yaml": []byte(text)} })
}

// fromSecret has the add-on take its values from the Secret, staged or not.
func fromSecret(staged *bool) func(*addonsv1.AddonStackSpec) {
	return func(spec *addonsv1.AddonStackSpec) {
		ref := fromSecrets("inputs")[0]
		ref.Staged = staged
		spec.Addons[0].ValuesTemplate, spec.Addons[0].ValuesFrom = "", []addonsv1.ValuesReference{ref}
	}
}

// replacedOn is an add-on that stays as it is, though its Secret was changed.
func replacedOn(want addonsv1.AddonPhase) clusterCheck {
	return phase("settings", want, deliver.ReasonInputReplaced, "inputs")
}

// TestRolloutOfASecret changes a Secret in place: the canary alone gets it, until somebody approves. A change that can't be
// applied is rolled back to values that no object has any more. No Secret is written for it in the management cluster.
func TestRolloutOfASecret(t *testing.T) {
	long.InCI(t)
	t.Parallel()
	r := newRolling(t, "secret", 3)
	since := world.hub.mark(t)
	r.create(r.secret("inputs", map[string]string{"values.yaml": "text: one"}))
	r.changeStack("platform", func(spec *addonsv1.AddonStackSpec) {
		fromSecret(nil)(spec)
		rollsOut(addonsv1.Rollout{Waves: []addonsv1.RolloutWave{{Name: "canary", Size: ofNumber(1)}}, OnFailure: addonsv1.RolloutRollBack, MaxConcurrent: ofNumber(3)})(spec)
	})
	first := r.awaitPhase(addonsv1.RolloutCompleted, 3, "the same values from a Secret").Status.Rollout.Revision
	all := r.at(first)
	r.awaitTextOn(all, "one", "all have what the Secret has")

	r.changeStack("platform", func(spec *addonsv1.AddonStackSpec) {
		spec.Rollout.Waves = append(spec.Rollout.Waves, addonsv1.RolloutWave{Name: "late", Size: ptr.To(intstr.FromString("100%")), Approval: addonsv1.RolloutApprovalRequired})
	})
	r.awaitPhase(addonsv1.RolloutCompleted, 3, "a limit makes no revision")
	r.Expect(r.latestRevision("platform")).To(Equal(first))

	r.setValues("text: two")
	s := r.awaitPhase(addonsv1.RolloutWaitingForApproval, 1, "the canary has the other values")
	second := s.Status.Rollout.Revision
	r.Expect(second).NotTo(Equal(first))
	r.Expect(r.attempt(second).Cause).To(Equal(rollout.Followed))
	r.Expect(r.marks(first)).To(HaveKeyWithValue(addonsv1.RolloutInputsReplacedAnnotation, "Secret/inputs"))
	canary, others := r.at(second), r.at(first)
	r.awaitTextOn(canary, "two", "the canary has it")
	for _, name := range others {
		r.awaitCluster(name, "it stays, and says why", replacedOn(addonsv1.AddonReady))
		r.Expect(r.textOn(name, "settings")).To(Equal("one"))
	}
	r.awaitReady("platform", "each cluster has what it is meant to have")

	r.annotateRevision(second, addonsv1.RolloutApprovedAnnotation, "*")
	r.awaitPhase(addonsv1.RolloutCompleted, 3, "it is approved")
	r.awaitTextOn(all, "two", "all have it")
	made := map[string]string{}
	for _, name := range all {
		made[name] = r.textOn(name, "settings-made")
	}

	r.setValues("text: three\nbad: true")
	s = r.awaitPhase(addonsv1.RolloutRolledBack, 3, "it can't be applied, and is rejected")
	r.Expect(s.Status.Rollout.Completed).To(Equal(second))
	r.Expect(r.at(second)).To(HaveLen(3))
	check := func(when string) {
		for _, name := range all {
			r.awaitCluster(name, when, replacedOn(addonsv1.AddonReady))
			r.Expect(r.textOn(name, "settings")).To(Equal("two"), when)
			r.Expect(r.textOn(name, "settings-made")).To(Equal(made[name]), when)
		}
	}
	check("the values are as they were, generated ones too")
	revisions := r.releasesOf(all)
	r.restart()
	r.awaitPhase(addonsv1.RolloutRolledBack, 3, "a restart changes nothing")
	r.settle()
	check("after a restart, too")
	r.Expect(r.releasesOf(all)).To(Equal(revisions), "nothing is installed again")

	r.setValues("text: four")
	s = r.awaitPhase(addonsv1.RolloutWaitingForApproval, 1, "it is right")
	r.annotateRevision(s.Status.Rollout.Revision, addonsv1.RolloutApprovedAnnotation, "*")
	r.awaitPhase(addonsv1.RolloutCompleted, 3, "it comes to all")
	r.awaitTextOn(all, "four", "all have it")

	for _, e := range since.requests(t, r.user) {
		if e.ObjectRef != nil && e.ObjectRef.Resource == "secrets" {
			r.Expect([]string{"get", "list", "watch"}).To(ContainElement(e.Verb), "no Secret is written")
		}
	}
	r.changeStack("platform", fromSecret(new(false)))
	r.awaitPhase(addonsv1.RolloutWaitingForApproval, 1, "an edit goes its way")
	revision := r.latestRevision("platform")
	r.annotateRevision(revision, addonsv1.RolloutApprovedAnnotation, "*")
	r.awaitPhase(addonsv1.RolloutCompleted, 3, "nothing was changed")
	began := time.Now()
	r.setValues("text: five")
	r.awaitTextOn(all, "five", "all get it at once")
	t.Logf("values that aren't staged reached %d clusters within %s", len(all), time.Since(began).Round(time.Millisecond))
	r.Expect(r.latestRevision("platform")).To(Equal(revision), "it is no revision")
}

// revisionsOf returns the revisions of the add-on on clusters.
func (r *rolling) releasesOf(clusters []string) (revisions []int32) {
	r.t.Helper()
	for _, name := range clusters {
		is := statusOf(r.clusterAddon(name), "settings")
		revisions = append(revisions, ptr.Deref(is, addonsv1.AddonStatus{}).Revision)
	}
	return revisions
}
