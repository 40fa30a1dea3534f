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
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/controlplane"
)

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
	must(t, s.List(t.Context(), pods, client.InNamespace(job.Namespace), client.MatchingLabels{batchv1.JobNameLabel: job.Name}))
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{controlplane.PodFate: nil}}})
	must(t, err)
	for _, pod := range pods.Items {
		if _, err := s.clientset.CoreV1().Pods(pod.Namespace).Patch(t.Context(), pod.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}
