// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/rollout"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/registry"
	"github.com/cluster-chandler/chandler/test/virtualcluster"
)

// approvedLate is a rollout with a canary, and a wave that somebody has to approve.
func approvedLate() func(*addonsv1.AddonStackSpec) {
	return rollsOut(addonsv1.Rollout{MaxConcurrent: ofNumber(3), Waves: []addonsv1.RolloutWave{
		{Name: "canary", Size: ofNumber(1)}, {Name: "late", ClusterSelector: &metav1.LabelSelector{}, Approval: addonsv1.RolloutApprovalRequired},
	}})
}

// makeForClass makes a stack for the clusters of a class, whose add-on has a text.
func (r *rolling) makeForClass(name, class, text string, more ...func(*addonsv1.AddonStackSpec)) {
	r.t.Helper()
	s := r.stackForClass(name, class, r.addon("settings", r.path, func(a *addonsv1.Addon) { a.ValuesTemplate = valuesFor(text, "none") }))
	for _, m := range more {
		m(&s.Spec)
	}
	r.create(s)
}

// TestRolloutAmidASwitchOfClass has clusters come to a stack and leave it, by their class, while a wave waits for approval.
// Who comes gets the newest completed revision at once. Where none is completed, the add-ons of the previous class stay until
// the turn of the cluster. Nothing is uninstalled.
func TestRolloutAmidASwitchOfClass(t *testing.T) {
	long.InCI(t)
	t.Parallel()
	tn := newTenant(t)
	r := &rolling{
		tenant: tn, authority: virtualcluster.NewAuthority(t), path: tn.writeChart("settings", "1.0.0", rollingChart), name: "class",
		clients: map[string]client.Client{},
	}
	r.startManager()
	r.makeForClass("platform", "b", "one")
	r.makeForClass("previous", "a", "previous")
	for i, class := range []string{"b", "b", "b", "a", "a", "c"} {
		r.switchClass(r.join(i), class)
	}
	comes, waits := "class-3", "class-4"
	r.awaitStatus("platform", "installed", counts(3, 3))
	r.awaitStatus("previous", "installed", counts(2, 2))
	before := r.latestRevision("platform")
	for i := range 3 {
		r.pass(fmt.Sprint("class-", i), addonsv1.DefaultMinReady)
	}
	r.awaitCompleted(before)
	made := map[string]string{comes: r.textOn(comes, "settings-made"), waits: r.textOn(waits, "settings-made")}
	workload := workloadServer(t, 1).mark(t)

	r.edit("two", "none", approvedLate())
	target := r.awaitPhase(addonsv1.RolloutWaitingForApproval, 1, "the canary has it").Status.Rollout.Revision
	r.switchClass(comes, "b")
	r.awaitTextOn([]string{comes}, "one", "it gets the completed revision at once")
	s := r.awaitPhase(addonsv1.RolloutWaitingForApproval, 1, "and nobody's place")
	tn.Expect(r.at(before)).To(And(HaveLen(3), ContainElement(comes)))
	tn.Expect(s.Status.Rollout.Waves[1]).To(HaveField("Total", int32(3)))
	leaves := r.at(before)[0]
	r.switchClass(leaves, "a")
	r.awaitTextOn([]string{leaves}, "previous", "it gets its class's")
	s = r.awaitPhase(addonsv1.RolloutWaitingForApproval, 1, "one has left")
	tn.Expect(s.Status.Rollout.Waves[1]).To(HaveField("Total", int32(2)))
	r.annotateRevision(target, addonsv1.RolloutApprovedAnnotation, "late")
	r.awaitPhase(addonsv1.RolloutCompleted, 3, "all of its class have it")
	r.awaitTextOn(r.at(target), "two", "also the one that came")
	tn.Expect(r.at(target)).To(ContainElement(comes))

	r.makeForClass("next", "c", "next", approvedLate(), func(spec *addonsv1.AddonStackSpec) { spec.Rollout.Waves = spec.Rollout.Waves[1:] })
	r.switchClass(waits, "c")
	r.awaitStatus("next", "it has two clusters", counts(2, 0))
	s = r.awaitStack("next", "nobody approved it", addonsv1.RolledOutCondition, metav1.ConditionFalse, string(addonsv1.RolloutWaitingForApproval), "")
	r.changeAddon("next", "settings", func(a *addonsv1.Addon) { a.ValuesTemplate = valuesFor("edited", "none") })
	r.awaitStatus("next", "an edit waits as well", func(is *addonsv1.AddonStack) error {
		if is.Status.Rollout.Revision == s.Status.Rollout.Revision {
			return errors.New("it isn't the target")
		}
		return nil
	})
	r.settle()
	tn.Expect(r.textOn(waits, "settings")).To(Equal("previous"), "it keeps the add-ons of its previous class")
	r.annotateRevision(r.latestRevision("next"), addonsv1.RolloutApprovedAnnotation, "*")
	r.awaitTextOn([]string{waits}, "edited", "it is approved")
	r.awaitStatus("next", "it is approved", counts(2, 2))

	for name, text := range made {
		tn.Expect(r.textOn(name, "settings-made")).To(Equal(text), "%s: the release continues", name)
	}
	for name := range r.clients {
		gone := described(workload.requests(t, r.clusterUser(name)), func(e auditEvent) bool {
			return e.Verb == "delete" && strings.Contains(e.RequestURI, "/configmaps/")
		})
		tn.Expect(gone).To(BeEmpty(), name)
	}
}

// TestRolloutOfReleases follows a channel of a Cluster Stack. A release reaches the canary. One that is published while a
// wave waits doesn't end the rollout: it comes after it, to the canary first. It is given up, and the next one begins with the canary.
func TestRolloutOfReleases(t *testing.T) {
	long.InCI(t)
	t.Parallel()
	tn := newTenant(t)
	server := registry.Start(t, registry.Options{PlainHTTP: true})
	const line, stage = "test-stack-1-31", "settings"
	publish := func(patch int) string {
		tag := fmt.Sprintf("%s-v0-beta-%d", line, patch)
		server.PushRelease(t, betaRelease(stage, fmt.Sprintf("v0-beta.%d", patch), tag), "stacks", tag)
		return tag
	}
	r := &rolling{tenant: tn, authority: virtualcluster.NewAuthority(t), name: "release", clients: map[string]client.Client{}}
	seven := publish(7)
	r.startManager()
	for i := range 3 {
		r.join(i)
	}
	s := r.newStack("platform", labels("env=prod"))
	s.Spec.Source = &addonsv1.BundleSource{ClusterStack: line, Channel: "beta", ArtifactSource: addonsv1.ArtifactSource{
		OCI: &addonsv1.OCISource{URL: server.URL("stacks"), PlainHTTP: ptr.To(true)},
	}}
	r.create(s)
	r.awaitReady("platform", "all have the first release")
	runs := func(clusters []string, tag string) {
		t.Helper()
		for _, name := range clusters {
			r.awaitCluster(name, "it runs its release", ready(stage))
			found := &corev1.ConfigMap{}
			tn.Expect(r.clients[name].Get(t.Context(), client.ObjectKey{Namespace: "kube-system", Name: stage}, found)).To(Succeed())
			tn.Expect(found.Data).To(HaveKeyWithValue("text", tag), name)
		}
	}
	r.changeStack("platform", approvedLate())
	first := r.awaitPhase(addonsv1.RolloutCompleted, 3, "a limit makes no revision").Status.Rollout.Revision

	eight := publish(8)
	r.lookNow("platform")
	second := r.awaitPhase(addonsv1.RolloutWaitingForApproval, 1, "the canary has the newer release").Status.Rollout.Revision
	canary, others := r.at(second), r.at(first)
	tn.Expect(r.attempt(second).Cause).To(Equal(rollout.Followed))
	runs(canary, eight)
	runs(others, seven)

	nine := publish(9)
	r.lookNow("platform")
	r.awaitStatus("platform", "it is found", followsAt(addonsv1.FollowedSource, nine, ""))
	s = r.awaitPhase(addonsv1.RolloutWaitingForApproval, 1, "it waits for the one under way")
	tn.Expect(s.Status.Rollout.Revision).To(Equal(second))
	runs(canary, eight)
	r.annotateRevision(second, addonsv1.RolloutApprovedAnnotation, "late")
	poll(t, patience, "the other one begins once the first one is completed", func() error {
		if third := r.latestRevision("platform"); len(r.at(third)) != 1 {
			return fmt.Errorf("%v have %s", r.at(third), third)
		}
		return nil
	})
	s = r.awaitPhase(addonsv1.RolloutWaitingForApproval, 1, "its canary has it")
	third := s.Status.Rollout.Revision
	tn.Expect(s.Status.Rollout.Completed).To(Equal(second))
	tn.Expect(r.at(third)).To(Equal(canary))
	runs(canary, nine)
	runs(others, eight)

	r.annotateRevision(third, addonsv1.RolloutRejectedAnnotation, "INC-4711")
	r.awaitPhase(addonsv1.RolloutRolledBack, 3, "it is given up")
	tn.Expect(r.at(second)).To(HaveLen(3))
	runs(append(canary, others...), eight)
	publish(10)
	r.lookNow("platform")
	s = r.awaitPhase(addonsv1.RolloutWaitingForApproval, 1, "a release after it is a new beginning")
	tn.Expect(s.Status.Rollout.Revision).NotTo(Equal(third))
	tn.Expect(r.at(s.Status.Rollout.Revision)).To(Equal(canary))
}
