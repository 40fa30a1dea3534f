// SPDX-License-Identifier: Apache-2.0

package deliver_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
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
			e.ensureAs(want, deliver.ReasonRunningHook)
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
	look := func() deliver.Outcome { return e.ensure(want) }
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
	o := e.ensureAs(running, deliver.ReasonWaitingForObjects)
	e.Expect(o.Phase).To(Equal(addonsv1.AddonInstalling))
	e.Expect(o.Message).To(ContainSubstring("Job " + ns + "/migrate"))

	failing := e.wantNamed("failing", ns, chart{version: "1", manifest: strings.Replace(plainJob("  activeDeadlineSeconds: 0\n", stuck), "name: migrate", "name: fails", 1)})
	o = e.settleAs(failing, deliver.ReasonObjectFailed)
	e.Expect(o.Message).To(And(ContainSubstring("Job "+ns+"/fails"), ContainSubstring("DeadlineExceeded")))

	succeeding := e.wantNamed("succeeding", ns, chart{version: "1", manifest: strings.Replace(plainJob("", ""), "name: migrate", "name: succeeds", 1)})
	e.install(succeeding)
	conditions, _, _ := unstructured.NestedSlice(e.get("batch/v1", "Job", ns, "succeeds").Object, "status", "conditions")
	e.Expect(conditions).To(ContainElement(HaveKeyWithValue("type", "Complete")))
}

func gated(e *env, ns string) deliver.Desired {
	want := e.want(ns, chart{version: "1", manifest: configMap("a", "x")})
	want.Readiness = []addonsv1.ReadinessCheck{{APIVersion: "v1", Kind: "ConfigMap", Expression: "self.data.open == 'yes'"}}
	return want
}

// open makes the add-on of gated ready, without touching a field of it.
func open(e *env, ns string) {
	e.apply("kubectl", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: "+ns+"}\ndata: {open: 'yes'}\n")
}

func TestWatchesEnd(t *testing.T) {
	e, ns := alone(t)
	e.install(e.want(ns, chart{version: "0", manifest: configMap("a", "x")})) // opens the connections
	before := runtime.NumGoroutine()
	want := gated(e, ns)
	for _, end := range []func(){
		func() { e.d.Forget(e.target.Name) },
		func() { open(e, ns); e.install(want) },
	} {
		o := e.ensureAs(want, deliver.ReasonWaitingForObjects)
		e.Expect(o.Message).To(ContainSubstring("self.data.open"))
		e.Eventually(runtime.NumGoroutine).Should(BeNumerically(">", before))
		end()
		e.Eventually(runtime.NumGoroutine).WithTimeout(10 * time.Second).Should(BeNumerically("<=", before+2))
	}
}

func TestWaitingCostsNothing(t *testing.T) {
	e, ns := alone(t)
	want := gated(e, ns)
	e.ensure(want)
	time.Sleep(500 * time.Millisecond)
	e.meter.reset()
	time.Sleep(2 * time.Second)
	requests, _ := e.meter.total()
	e.Expect(requests).To(BeZero(), "%v", e.meter.counts)
	e.ensureAs(want, deliver.ReasonWaitingForObjects)
	requests, _ = e.meter.total()
	e.Expect(requests).To(BeZero(), "the records are known")
	e.clock.step(11 * time.Second)
	e.ensure(want)
	requests, writes := e.meter.total()
	e.Expect([]int{requests, writes}).To(Equal([]int{2, 1}), "they are looked at again, and say now what is waited for")
}

// TestRecordChangesWhileItIsWaitedFor has somebody delete or change the record that a session knows.
// The add-on is installed all the same, and has a record.
func TestRecordChangesWhileItIsWaitedFor(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*env, *unstructured.Unstructured){
		"deleted": func(e *env, record *unstructured.Unstructured) {
			e.Expect(e.target.Client.Delete(e.ctx, record)).To(Succeed())
		},
		"changed": func(e *env, record *unstructured.Unstructured) {
			e.edit("somebody", record, `{"metadata":{"annotations":{"other":"yes"}}}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			e, ns := beside(t)
			want := gated(e, ns)
			e.ensureAs(want, deliver.ReasonWaitingForObjects)
			change(e, e.get("v1", "Secret", ns, "sh.helm.release.v1.demo.v1"))
			open(e, ns)
			e.install(want)
			e.Expect(e.records(ns)[want.Release].Status).To(Equal(deliver.StatusDeployed))
			e.Expect(changesOf(e.find(deliver.Repair{Release: want.Release}))).To(BeEmpty())
		})
	}
}

func TestReconnection(t *testing.T) {
	e, ns := alone(t)
	want := gated(e, ns)
	e.ensure(want)
	// The connection ends, and another one is made; the Deliverer stays.
	d := e.d
	e.stop()
	notify := e.wakeup
	e.restart()
	e.d, e.wakeup = d, notify
	open(e, ns) // nobody sees it
	e.install(want)
}

func TestObjectDeletedWhileWaiting(t *testing.T) {
	e, ns := alone(t)
	want := gated(e, ns)
	e.ensure(want)
	uid := e.get("v1", "ConfigMap", ns, "a").GetUID()
	time.Sleep(300 * time.Millisecond)
	e.Expect(e.target.Client.Delete(e.ctx, e.get("v1", "ConfigMap", ns, "a"))).To(Succeed())
	e.Eventually(e.wakeup).WithTimeout(5 * time.Second).Should(Receive())
	e.ensure(want)
	e.Expect(e.get("v1", "ConfigMap", ns, "a").GetUID()).NotTo(Equal(uid))
}

// unanswered is YAML of a webhook of a namespace that nobody answers.
func unanswered(ns, rule, more string) string {
	return strings.NewReplacer("NS", ns, "RULE", rule, "MORE", more).Replace(`---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: NS}
webhooks:
- name: check.NS.example.com
  clientConfig: {service: {name: nobody, namespace: NS}}
  rules: [{RULE}]
  MORE
  failurePolicy: Fail
  sideEffects: None
  timeoutSeconds: 1
  admissionReviewVersions: [v1]
`)
}

// TestWebhookOfTheAddonItself: a webhook that can't be called yet isn't a failure.
func TestWebhookOfTheAddonItself(t *testing.T) {
	e, ns := alone(t)
	webhook := unanswered(ns, `apiGroups: [`+ns+`.example.com], apiVersions: ["*"], operations: ["*"], resources: ["*"]`, "")
	group := ns + ".example.com"
	want := e.want(ns, chart{version: "1", manifest: crd(group) + widget(group, "w") + webhook + configMap("a", "x")})
	want.ProgressDeadline = 20 * time.Second
	o := e.ensureUntil(want, func(o deliver.Outcome) bool { return o.Reason != object.ReasonWaitingForCRDs })
	e.Expect(o.Reason).To(Equal(object.ReasonWaitingForWebhook), o.Message)
	e.Expect(o.Phase).To(Equal(addonsv1.AddonInstalling))
	e.Expect(o.RetryAfter).To(Equal(5 * time.Second))
	e.Expect(o.Message).To(ContainSubstring("check." + ns))
	e.clock.step(21 * time.Second)
	o = e.ensure(want)
	e.Expect(o.Phase).To(Equal(addonsv1.AddonFailed))
	e.Expect(e.remove(want.Release).Gone).To(BeTrue())
}
