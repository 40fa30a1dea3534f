// SPDX-License-Identifier: Apache-2.0

package deliver_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/render/job"
	"github.com/cluster-chandler/chandler/test/controlplane"
)

// plainJob is a Job that is no hook.
func plainJob(spec, podAnnotations string) string {
	return fmt.Sprintf(`---
apiVersion: batch/v1
kind: Job
metadata: {name: migrate}
spec:
  backoffLimit: 0
%s  template:
    metadata: {annotations: {%s}}
    spec: {restartPolicy: Never, containers: [{name: c, image: example.com/app:1}]}
`, spec, podAnnotations)
}

const (
	stuck    = controlplane.PodFate + ": " + controlplane.PodStuck
	collects = "  ttlSecondsAfterFinished: 0\n"
)

// stuckDeployment never becomes ready.
func stuckDeployment() string {
	return strings.Replace(deployment("app"), "metadata: {labels: {app: app}}", "metadata: {labels: {app: app}, annotations: {"+stuck+"}}", 1)
}

// made counts how often a Job was made or changed.
func (m *meter) made(job string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := 0
	for _, line := range m.log {
		if strings.HasPrefix(line, "PATCH") && strings.HasSuffix(line, "/jobs/"+job) {
			n++
		}
	}
	return n
}

// awaitCollected waits until a Job that was made is gone.
func (e *env) awaitCollected(ns, name string) {
	e.t.Helper()
	e.Expect(e.meter.made(name)).To(Equal(1), "the Job was made")
	e.Eventually(func() any { return e.get("batch/v1", "Job", ns, name) }).WithTimeout(time.Minute).WithPolling(100*time.Millisecond).
		Should(BeNil(), "its TTL is over")
}

// TestHookJobThatIsCollectedAtOnce has hooks whose Jobs are deleted as soon as they are
// complete, before anybody comes back to look.
func TestHookJobThatIsCollectedAtOnce(t *testing.T) {
	for i := range 20 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			e, ns := beside(t)
			manifest := strings.Replace(jobText("create", false), "  backoffLimit: 0\n", "  backoffLimit: 0\n"+collects, 1)
			want := e.want(ns, chart{version: "1", manifest: configMap("a", "x"), hooks: []job.Hook{
				hook("create", 0, manifest, []string{"pre-install"}, "before-hook-creation", "hook-succeeded"),
			}})
			o := e.ensure(want)
			e.Expect(o.Reason).To(Equal(deliver.ReasonRunningHook))
			e.awaitCollected(ns, "create")
			e.install(want)
			e.Expect(e.meter.made("create")).To(Equal(1))
		})
	}
}

// TestJobRunsOnceForARevision has a Job that is collected when it is complete, beside
// something that never gets ready.
func TestJobRunsOnceForARevision(t *testing.T) {
	e, ns := beside(t)
	want := e.want(ns, chart{version: "1", manifest: plainJob(collects, "") + stuckDeployment()})
	look := func() deliver.Outcome {
		t.Helper()
		o := e.ensure(want)
		return o
	}
	look()
	e.awaitCollected(ns, "migrate")
	e.Eventually(look).WithTimeout(20*time.Second).Should(And(HaveField("Reason", deliver.ReasonWaitingForObjects),
		HaveField("Ready", BeEquivalentTo(1)), HaveField("Message", Not(ContainSubstring("Job")))), "it is done")
	e.restart()
	e.Expect(look()).To(And(HaveField("Reason", deliver.ReasonWaitingForObjects), HaveField("Ready", BeEquivalentTo(1))), "also after a restart")
	e.clock.step(time.Hour)
	e.Expect(look().Phase).To(Equal(addonsv1.AddonFailed))
	e.restart()
	look()
	e.Expect(e.meter.made("migrate")).To(Equal(1), "also while the revision is failed")
	e.Expect(e.get("batch/v1", "Job", ns, "migrate")).To(BeNil())
}

// TestJobIsReadyWhenItHasRun has a Job that runs on, one that fails, and one that succeeds.
func TestJobIsReadyWhenItHasRun(t *testing.T) {
	e, ns := beside(t)
	running := e.want(ns, chart{version: "1", manifest: plainJob("", stuck)})
	e.ensure(running)
	e.Eventually(func() int64 {
		active, _, _ := unstructured.NestedInt64(e.get("batch/v1", "Job", ns, "migrate").Object, "status", "active")
		return active
	}).WithTimeout(20 * time.Second).Should(BeEquivalentTo(1))
	o := e.ensure(running)
	e.Expect(o.Phase).To(Equal(addonsv1.AddonInstalling))
	e.Expect(o.Reason).To(Equal(deliver.ReasonWaitingForObjects))
	e.Expect(o.Message).To(ContainSubstring("Job " + ns + "/migrate"))

	failing := e.want(ns, chart{version: "1", manifest: strings.Replace(plainJob("  activeDeadlineSeconds: 0\n", stuck), "name: migrate", "name: fails", 1)})
	failing.Name = "failing"
	o = e.settle(failing)
	e.Expect(o.Reason).To(Equal(deliver.ReasonObjectFailed))
	e.Expect(o.Message).To(And(ContainSubstring("Job "+ns+"/fails"), ContainSubstring("DeadlineExceeded")))

	succeeding := e.want(ns, chart{version: "1", manifest: strings.Replace(plainJob("", ""), "name: migrate", "name: succeeds", 1)})
	succeeding.Name = "succeeding"
	e.install(succeeding)
	conditions, _, _ := unstructured.NestedSlice(e.get("batch/v1", "Job", ns, "succeeds").Object, "status", "conditions")
	e.Expect(conditions).To(ContainElement(HaveKeyWithValue("type", "Complete")))
}
