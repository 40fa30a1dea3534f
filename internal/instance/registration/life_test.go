// SPDX-License-Identifier: Apache-2.0

package registration_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/instance/registration"
	"github.com/cluster-chandler/chandler/test/long"
)

// An instance that nothing is in the way of: it registers, works, and goes.
func TestLife(t *testing.T) {
	t.Parallel()
	h := newHome(t, shared)
	for name, ready := range map[string]metav1.ConditionStatus{"one": metav1.ConditionTrue, "two": metav1.ConditionFalse, "three": ""} {
		ca := &addonsv1.ClusterAddon{Spec: addonsv1.ClusterAddonSpec{ClusterName: name}}
		ca.Namespace, ca.Name = h.namespace, name
		h.Expect(h.s.Create(t.Context(), ca)).To(Succeed())
		if ready != "" {
			conditions.Set(ca, metav1.Condition{Type: addonsv1.ReadyCondition, Status: ready, Reason: "Test"})
			h.Expect(h.s.Status().Update(t.Context(), ca)).To(Succeed())
		}
	}
	p := h.start()
	p.awaitWorking(patience, "nobody else is there")
	h.Expect(p.Ready(nil)).To(Succeed())
	h.Eventually(func() *addonsv1.InstanceClusters { return h.get().Status.Clusters }).WithTimeout(patience).Should(Equal(&addonsv1.InstanceClusters{Total: 3, Ready: 1}))
	pi := h.get()
	h.Expect(pi.Spec.Holder).NotTo(BeEmpty())
	h.Expect(pi.Spec).To(Equal(addonsv1.ProviderInstanceSpec{
		Namespaces: []string{h.namespace}, Version: "v1.2.3", APIVersions: []string{"v1beta1"}, Holder: pi.Spec.Holder,
		Claim: addonsv1.ScopeClaiming, ExpirySeconds: 4,
	}))
	h.Expect(pi.Status.Scope).To(Equal(h.namespace))
	h.Expect(pi.Status.Sandbox).To(Equal(addonsv1.SandboxSeccomp))
	for _, condition := range []string{addonsv1.ReadyCondition, addonsv1.APICompatibleCondition, addonsv1.NamespacesAccessibleCondition, addonsv1.ScopeHeldCondition} {
		h.Expect(conditions.IsTrue(pi, condition)).To(BeTrue(), condition)
	}

	before := len(h.requests())
	h.Eventually(func() time.Duration { return h.get().Status.HeartbeatTime.Sub(pi.Status.HeartbeatTime.Time) }).
		WithTimeout(patience).Should(BeNumerically(">=", 3*time.Second), "the heartbeat continues")
	later := h.get()
	h.Expect(later.Generation).To(Equal(pi.Generation), "a heartbeat is no new spec")
	h.Expect(later.Status.Conditions).To(Equal(pi.Status.Conditions), "nor a new condition")
	seconds := later.Status.HeartbeatTime.Sub(pi.Status.HeartbeatTime.Time).Seconds()
	atRest := h.requests()[before:]
	for _, r := range atRest {
		h.Expect(r.Verb+" "+r.ObjectRef.Resource+"/"+r.ObjectRef.Subresource).To(Equal("patch providerinstances/status"), "nothing else is asked at rest")
	}
	h.Expect(len(atRest)).To(BeNumerically("<=", seconds+1.5), "one request for each heartbeat")

	gone := make(chan bool, 1)
	go func() {
		for h.get() != nil {
			time.Sleep(10 * time.Millisecond)
		}
		gone <- p.working.Load() == 0
	}()
	p.end()
	h.Expect(h.get()).To(BeNil(), "who ends in order takes the object along")
	h.Expect(<-gone).To(BeTrue(), "but only when the controllers have ended")
	h.Expect(p.starts.Load()).To(Equal(int32(1)))
	h.Expect(h.events()).To(BeEmpty(), "nothing happened that people need to know")
	h.expectNothingForbidden()
}

// A process crashes; the next one of the same lease continues long before the
// object expires.
func TestNextLeader(t *testing.T) {
	t.Parallel()
	h := newHome(t, shared)
	first := h.start(withLease, withHeartbeat(20*time.Second))
	first.awaitWorking(patience, "the first leads")
	second := h.start(withLease, withHeartbeat(20*time.Second))
	h.Consistently(second.working.Load).WithTimeout(time.Second).Should(BeZero())
	h.Expect(second.Ready(nil)).To(Succeed(), "who waits for the lease is ready")
	before := h.get()

	first.cut.Store(true)
	second.awaitWorking(20*time.Second, "the lease excludes the first one")
	pi := h.get()
	h.Expect(pi.UID).To(Equal(before.UID), "it is the same instance")
	h.Expect(pi.Spec.Holder).NotTo(Equal(before.Spec.Holder))
	h.Eventually(h.events).WithTimeout(patience).Should(ConsistOf("TakenOver"))
	h.expectNothingForbidden()
}

// Without leader election only silence tells that a process is gone.
func TestNextWithoutLease(t *testing.T) {
	long.Test(t)
	t.Parallel()
	h := newHome(t, shared)
	first := h.start()
	first.awaitWorking(patience, "nobody else is there")
	holder := h.get().Spec.Holder
	second := h.start()
	h.Consistently(second.working.Load).WithTimeout(6*time.Second).Should(BeZero(), "the first is alive, for longer than its expiry")
	h.Eventually(func() error { return second.Ready(nil) }).Should(Succeed(), "who waits for its own predecessor stands by, as a rollout needs it")
	h.Expect(h.get().Spec.Holder).To(Equal(holder))

	first.cut.Store(true)
	cutAt := time.Now()
	second.awaitWorking(patience, "the first is silent")
	h.Expect(time.Since(cutAt)).To(BeNumerically(">", 3*time.Second), "it could have been slow")
	var err error
	h.Expect(first.dead).To(Receive(&err), "by then the first one has ended itself")
	h.Expect(err).To(MatchError(ContainSubstring("no heartbeat could be written for")))
	h.Eventually(h.events).WithTimeout(patience).Should(ContainElement("TakenOver"))
	h.expectNothingForbidden()
}

// A namespace of the scope that isn't there yet, or isn't the instance's.
func TestNamespaceComesLater(t *testing.T) {
	long.InCI(t)
	t.Parallel()
	h := newHome(t, shared)
	later := h.namespace + "-later"
	p := h.start(withNamespaces(h.namespace, later))
	h.Eventually(h.says(addonsv1.ReadyCondition)).WithTimeout(patience).Should(Equal("False NamespaceNotAccessible"))
	c := conditions.Get(h.get(), addonsv1.NamespacesAccessibleCondition)
	h.Expect(c.Message).To(ContainSubstring("list clusteraddons.addons.cluster.x-k8s.io in namespace " + later))
	h.Expect(h.says(addonsv1.ScopeHeldCondition)()).To(Equal("False ScopeNotClaimed"))
	h.Expect(h.get().Spec.Claim).To(Equal(addonsv1.ScopeWaiting))
	h.Expect(p.Ready(&http.Request{})).To(MatchError(ContainSubstring("NamespaceNotAccessible")))
	h.Consistently(func() metav1.Time { return conditions.Get(h.get(), addonsv1.ReadyCondition).LastTransitionTime }).
		WithTimeout(3*time.Second).Should(Equal(c.LastTransitionTime), "nothing flaps")

	h.createNamespace(later)
	h.Consistently(p.working.Load).WithTimeout(2 * time.Second).Should(BeZero())
	h.allowReads(later)
	p.awaitWorking(patience, "now it may")
	h.Eventually(h.says(addonsv1.ReadyCondition)).WithTimeout(patience).Should(Equal("True Ready"))
	h.Expect(p.Ready(nil)).To(Succeed())
	h.Eventually(h.events).WithTimeout(patience).Should(ConsistOf("NamespaceNotAccessible", "ScopeHeld"), "each change once")
	h.expectNothingForbidden()
}

// The instance may not even register: it can say so nowhere but in readyz.
func TestNoRights(t *testing.T) {
	t.Parallel()
	h := newHome(t, shared)
	p := h.start(func(o *registration.Options, _ *manager.Options) { o.Namespace = "elsewhere" })
	h.Eventually(func() error { return p.Ready(nil) }).WithTimeout(patience).Should(MatchError(ContainSubstring(`cannot get resource "providerinstances" in API group "addons.cluster.x-k8s.io" in the namespace "elsewhere"`)))
	h.Consistently(p.working.Load).WithTimeout(2 * time.Second).Should(BeZero())
}

// People delete and edit what they should only read.
func TestMeddling(t *testing.T) {
	t.Parallel()
	h := newHome(t, shared)
	p := h.start()
	p.awaitWorking(patience, "nobody else is there")

	uid := h.get().UID
	h.Expect(h.s.Delete(t.Context(), h.get())).To(Succeed())
	h.Eventually(h.says(addonsv1.ReadyCondition)).WithTimeout(patience).Should(Equal("True Ready"), "it is made again")
	h.Expect(h.get().UID).NotTo(Equal(uid))

	pi := h.get()
	pi.Spec.Holder = "usurper"
	h.Expect(h.s.Update(t.Context(), pi)).To(MatchError(ContainSubstring("spec.holder")), "its process is alive")
	pi = h.get()
	pi.Spec.Namespaces = append(pi.Spec.Namespaces, "another")
	h.Expect(h.s.Update(t.Context(), pi)).To(MatchError(ContainSubstring("fixed for a holder")))

	h.edit(func(pi *addonsv1.ProviderInstance) { pi.Spec.Version = "v9" })
	h.Eventually(func() string { return h.get().Spec.Version }).WithTimeout(patience).Should(Equal("v1.2.3"), "it is put right")

	pi = h.get()
	conditions.Set(pi, metav1.Condition{Type: addonsv1.ReadyCondition, Status: metav1.ConditionUnknown, Reason: addonsv1.HeartbeatExpiredReason})
	pi.Status.Scope, pi.Status.Clusters = "nonsense", &addonsv1.InstanceClusters{Total: 99}
	h.Expect(h.s.Status().Patch(t.Context(), pi, client.Merge)).To(Succeed())
	h.Eventually(h.says(addonsv1.ReadyCondition)).WithTimeout(patience).Should(Equal("True Ready"), "status, too")
	h.Expect(h.get().Status.Scope).To(Equal(h.namespace))
	h.Expect(h.get().Status.Clusters).To(Equal(&addonsv1.InstanceClusters{}))
	h.Expect(p.starts.Load()).To(Equal(int32(1)), "all that without a restart of the controllers")
	h.Expect(p.dead).NotTo(Receive())

	h.edit(func(pi *addonsv1.ProviderInstance) { pi.Spec.Claim = addonsv1.ScopeWaiting })
	h.Eventually(p.dead).WithTimeout(patience).Should(Receive(MatchError(ContainSubstring("somebody edited spec.claim"))), "another may have claimed since")
}

// A process that sees another one in its place ends.
func TestReplaced(t *testing.T) {
	t.Parallel()
	h := newHome(t, shared)
	p := h.start(withLease)
	p.awaitWorking(patience, "nobody else is there")
	h.edit(func(pi *addonsv1.ProviderInstance) { pi.Spec.Holder = "usurper" }) // as the next leader does
	h.Eventually(p.dead).WithTimeout(patience).Should(Receive(MatchError(ContainSubstring("usurper holds it"))))
	p.end()
	h.Expect(h.get()).NotTo(BeNil(), "the object is another's now")
}

// An API server that hangs: the process ends before others may take over.
func TestFence(t *testing.T) {
	t.Parallel()
	h := newHome(t, ownServer(t, crds, clusterCRD))
	p := h.start(withHeartbeat(1500 * time.Millisecond)) // expires after 6 s
	p.awaitWorking(patience, "nobody else is there")
	before := h.get()
	h.Expect(h.s.PauseAPIServer()).To(Succeed())
	var err error
	h.Eventually(p.dead).WithTimeout(patience).Should(Receive(&err))
	took := time.Since(before.Status.HeartbeatTime.Time)
	h.Expect(h.s.ResumeAPIServer()).To(Succeed())
	h.Expect(err).To(MatchError(ContainSubstring("no heartbeat could be written for 4s")))
	h.Expect(took).To(BeNumerically("<", 6*time.Second), "the heartbeat's expiry")
	h.Expect(strings.Count(err.Error(), "\n")).To(BeZero())
	h.Expect(ptr.Deref(h.get(), addonsv1.ProviderInstance{}).Spec.Holder).To(Equal(before.Spec.Holder), "the object stays: whoever comes next has to wait for its expiry")
}
