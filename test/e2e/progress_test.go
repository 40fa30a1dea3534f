// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/controlplane"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/must"
)

// workloadChart is a Deployment whose pods are stuck if .Values.stuck.
var workloadChart = chart{
	"values.yaml": "stuck: false\n",
	"templates/deploy.yaml": deployment("{{ .Release.Name }}", "1",
		controlplane.PodFate+": "+quoted("{{ if .Values.stuck }}"+controlplane.PodStuck+"{{ end }}")),
}

// TestStuck has an add-on that never becomes ready.
func TestStuck(t *testing.T) {
	long.Test(t)
	t.Parallel()
	tn, s := newProd(t, 1)
	path := tn.writeChart("workload", "1.0.0", workloadChart)
	stuck := withValues(map[string]any{"stuck": true})
	tn.makeStack("platform", nil,
		tn.addon("last", path, after("middle")),
		tn.addon("middle", path, after("first")),
		tn.addon("first", path, stuck, func(a *addonsv1.Addon) { a.ProgressDeadlineSeconds = ptr.To[int32](10) }),
		tn.addon("free", path),
	)
	tn.awaitCluster("prod", "who waits for whom is to be seen, and nobody waits without need",
		phase("first", addonsv1.AddonInstalling, "", "Deployment"),
		phase("middle", addonsv1.AddonPending, "WaitingForDependency", "first"),
		phase("last", addonsv1.AddonPending, "WaitingForDependency", "middle"),
		installedAs("free", 1, "1.0.0"))
	tn.Expect(s.release(t, tn.namespace, "middle")).To(BeZero(), "nothing of an add-on is applied before its dependencies are ready")

	tn.awaitCluster("prod", "after its deadline the add-on counts as failed, and says what isn't ready",
		phase("first", addonsv1.AddonFailed, "", tn.namespace+"/first"))
	tn.Expect(s.release(t, tn.namespace, "middle")).To(BeZero())

	tn.changeAddon("platform", "first", withValues(map[string]any{"stuck": false}))
	tn.awaitReady("platform", "an upgrade isn't held up by an installation that never came to its end")
	tn.awaitCluster("prod", "all follow", ready("free", "first", "middle", "last"), installedAs("middle", 1, ""), installedAs("last", 1, ""))

	tn.changeAddon("platform", "first", stuck)
	tn.awaitCluster("prod", "an upgrade that gets stuck is under way", phase("first", addonsv1.AddonUpgrading, "", ""))
	tn.changeAddon("platform", "first", withValues(map[string]any{"stuck": false}))
	tn.awaitReady("platform", "and the next change is taken up at once")
	for _, r := range s.history(t, tn.namespace, "first") {
		tn.Expect(r.Info.Status.IsPending()).To(BeFalse(), "no revision stays pending, or Helm refuses to work on the release: revision %d is %s", r.Version, r.Info.Status)
	}
}

// TestHooksResume restarts the manager while the Job of a hook runs.
func TestHooksResume(t *testing.T) {
	t.Parallel()
	for _, hook := range []string{"pre-install", "post-install"} {
		t.Run(hook, func(t *testing.T) {
			t.Parallel()
			tn := newTenant(t)
			s := workloadServer(t, 0)
			begin := s.mark(t)
			path := tn.writeChart("hooked", "1.0.0", chart{
				"templates/text.yaml": configMap("text", "x"),
				"templates/hook.yaml": hookJob(hook, controlplane.PodFate+": "+controlplane.PodStuck),
			})
			tn.makeCluster("prod", s, nil)
			tn.startManager()
			tn.makeStack("platform", nil, tn.addon("hooked", path))

			job := &batchv1.Job{ObjectMeta: tn.named(hook)}
			await(t, s, job, patience, "the hook's Job is to start", func(j *batchv1.Job) error {
				if j.Status.Active != 1 {
					return fmt.Errorf("%d pods are active", j.Status.Active)
				}
				return nil
			})
			tn.awaitCluster("prod", "who waits for what is to be seen", phase("hooked", addonsv1.AddonInstalling, "", hook))
			uid := job.UID

			tn.restart()
			tn.settle()
			tn.Expect(s.Get(t.Context(), client.ObjectKeyFromObject(job), job)).To(Succeed())
			tn.Expect(job.UID).To(Equal(uid), "a restart leaves a hook that runs alone")
			tn.awaitCluster("prod", "the new manager waits on", phase("hooked", addonsv1.AddonInstalling, "", hook))

			s.finishJob(t, job)
			tn.awaitReady("platform", "the end of the hook's Job is to be noticed after a restart")
			created := creations(begin.requests(t, tn.clusterUser("prod")), "jobs", hook)
			tn.Expect(created).To(HaveLen(1), "the hook ran once")
			tn.Expect(s.release(t, tn.namespace, "hooked")).To(Equal(releaseState{1, "deployed"}))
		})
	}
}

// finishJob lets the stuck pods of a Job run to their end.
func (s *server) finishJob(t *testing.T, job *batchv1.Job) {
	t.Helper()
	pods := &corev1.PodList{}
	must.Succeed(t, s.List(t.Context(), pods, client.InNamespace(job.Namespace), client.MatchingLabels{batchv1.JobNameLabel: job.Name}))
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{controlplane.PodFate: nil}}})
	must.Succeed(t, err)
	for _, pod := range pods.Items {
		if _, err := s.clientset.CoreV1().Pods(pod.Namespace).Patch(t.Context(), pod.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}
