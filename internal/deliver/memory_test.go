// SPDX-License-Identifier: Apache-2.0

package deliver_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	helmrelease "helm.sh/helm/v4/pkg/release/v1"
	"helm.sh/helm/v4/pkg/storage"
	"helm.sh/helm/v4/pkg/storage/driver"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/fleet/budget"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/render/job"
)

// story notes what happens in its order, and lets the first write of each namespace wait.
type story struct {
	next  http.RoundTripper
	gates map[string]chan struct{} // by namespace

	mu     sync.Mutex
	events []string
}

func (s *story) tell(event string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = append(s.events, event)
}

func (s *story) told(event string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, e := range s.events {
		if e == event {
			return i
		}
	}
	return -1
}

func (s *story) RoundTrip(r *http.Request) (*http.Response, error) {
	if _, path, ok := strings.Cut(r.URL.Path, "/namespaces/"); ok && r.Method == http.MethodPatch {
		namespace, _, _ := strings.Cut(path, "/")
		s.tell("write " + namespace)
		if gate := s.gates[namespace]; gate != nil {
			<-gate
		}
	}
	return s.next.RoundTrip(r)
}

// TestLargeAddonsTakeTurns has two add-ons which can't be worked on at once. The second is rendered once to see that,
// waits for the first's turn to be over, and continues while the first waits. Both are installed in the end.
func TestLargeAddonsTakeTurns(t *testing.T) {
	e := newEnv(t)
	first, second := e.namespace(), e.namespace()
	s := &story{gates: map[string]chan struct{}{first: make(chan struct{})}}
	cfg := rest.CopyConfig(config)
	cfg.QPS, cfg.Burst = -1, -1
	cfg.Wrap(func(rt http.RoundTripper) http.RoundTripper { s.next = rt; return s })
	c, err := client.New(cfg, client.Options{})
	e.Expect(err).NotTo(HaveOccurred())
	e.target.Client = c

	large := chart{version: "1"}
	for i := range 700 {
		large.manifest += configMap(fmt.Sprintf("c%03d", i), strings.Repeat("x", 15_000))
	}
	ensure := func(ns string) (deliver.Outcome, error) {
		want := e.want(ns, large)
		render := want.Render
		want.Render = func(ctx context.Context, in deliver.RenderInput) (*deliver.Rendering, error) {
			defer s.tell("rendered " + ns)
			return render(ctx, in)
		}
		o, err := e.d.Ensure(budget.WithTenant(e.ctx, budget.Tenant{Namespace: ns, Cluster: ns}), e.target, want)
		s.tell("stopped " + ns)
		return o, err
	}
	outcomes := make(chan deliver.Outcome, 1)
	happens := func(event string) {
		t.Helper()
		e.Eventually(s.told, time.Minute, 10*time.Millisecond).WithArguments(event).Should(BeNumerically(">=", 0), event)
	}
	go func() {
		o, err := ensure(first)
		e.Expect(err).NotTo(HaveOccurred())
		outcomes <- o
	}()
	happens("write " + first)
	o, err := ensure(second)
	e.Expect(err).NotTo(HaveOccurred())
	e.Expect(o.Reason).To(Equal(deliver.ReasonWaitingForTurn), o.Message)
	e.Expect(s.told("rendered "+second)).To(BeNumerically(">=", 0), "it was rendered to see how large it is")
	e.clock.step(time.Minute)
	close(s.gates[first])

	o = <-outcomes
	e.Expect(o.Reason).To(Equal(deliver.ReasonWaitingForTurn), o.Message)
	e.Expect(o.Ready).To(And(BeNumerically(">", 0), BeNumerically("<", 700)), o.Message)
	e.Eventually(e.wakeup, time.Minute).Should(Receive(), "the second is told of its turn")
	o, err = ensure(second)
	e.Expect(err).NotTo(HaveOccurred())
	e.Expect(o.Reason).To(Equal(deliver.ReasonReady), o.Message)
	e.Expect(s.told("write "+second)).To(BeNumerically(">", s.told("stopped "+first)), "the second waits for the first's turn to be over")
	o, err = ensure(first)
	e.Expect(err).NotTo(HaveOccurred())
	e.Expect(o.Reason).To(Equal(deliver.ReasonReady), o.Message)
	e.Expect(o.Revision).To(BeEquivalentTo(1), "it went on with its revision")
}

// manyObjects is a chart of which more is kept than may be.
func manyObjects(version string, hooks ...string) chart {
	c := chart{version: version}
	for i := range 60 {
		c.manifest += configMap(fmt.Sprintf("c%02d", i), version+strings.Repeat("x", 3000))
	}
	for _, event := range hooks {
		c.hooks = append(c.hooks, job.Hook{
			Name: event, Kind: "ConfigMap", Path: "demo/" + event, Manifest: configMap(event, version), Events: []string{event},
		})
	}
	return c
}

// TestWhatIsNotReadyTakesLittleMemory has objects and records dropped while they are waited for. They are read again,
// and nothing else is written or asked for.
func TestWhatIsNotReadyTakesLittleMemory(t *testing.T) {
	for title, tc := range map[string]struct{ room, reads int }{
		"there is room":    {reads: 0},
		"there is no room": {room: 1, reads: 1},
	} {
		t.Run(title, func(t *testing.T) {
			e := newEnv(t)
			wakeup := e.wakeup
			e.d.Deliverer = deliver.New(deliver.Options{Clock: e.clock, MaxKept: tc.room, Notify: func(string) {
				select {
				case wakeup <- struct{}{}:
				default:
				}
			}})
			ns := e.namespace()
			never := func(want deliver.Desired) deliver.Desired {
				want.Readiness = []addonsv1.ReadinessCheck{{APIVersion: "v1", Kind: "ConfigMap", Expression: "self.data.key == 'never'"}}
				return want
			}
			ensure := func(want deliver.Desired, requests, writes int, why string) deliver.Outcome {
				t.Helper()
				e.meter.reset()
				o := e.ensure(want)
				r, w := e.meter.total()
				e.Expect([]int{r, w}).To(Equal([]int{requests, writes}), why)
				return o
			}
			manifest := func() string {
				found, err := storage.Init(driver.NewSecrets(e.clientset().CoreV1().Secrets(ns))).Last("demo")
				e.Expect(err).NotTo(HaveOccurred())
				return found.(*helmrelease.Release).Manifest
			}
			chart := manyObjects("1", "post-install", "pre-delete")
			want := never(e.want(ns, chart))

			e.ensureAs(want, deliver.ReasonWaitingForObjects)
			time.Sleep(time.Second) // the watch begins
			o := ensure(want, tc.reads, 0, "nothing has changed")
			e.Expect([]int32{o.Total, o.Ready}).To(Equal([]int32{60, 0}), o.Message)
			e.clock.step(15 * time.Second)
			ensure(want, 2+tc.reads, 1, "the records are listed, and that all was applied is noted")
			e.Expect(manifest()).To(Equal(chart.manifest))

			chart = manyObjects("1.1", "post-install", "pre-delete")
			e.install(e.want(ns, chart))
			e.Expect(manifest()).To(Equal(chart.manifest))
			e.Expect(e.get("v1", "ConfigMap", ns, "post-install")).NotTo(BeNil(), "the hook ran")
			next := manyObjects("2")
			e.ensureAs(never(e.want(ns, next)), deliver.ReasonWaitingForObjects)
			late := never(e.want(ns, next))
			late.OnFailure, late.ProgressDeadline = addonsv1.FailurePolicyRollBack, time.Nanosecond
			e.clock.step(time.Minute)
			e.Expect(e.reach(late, deliver.ReasonRolledBack).Revision).To(BeEquivalentTo(4))
			e.Expect(manifest()).To(Equal(chart.manifest))
			e.Expect(e.remove(want.Release).Gone).To(BeTrue())
			e.Expect(e.get("v1", "ConfigMap", ns, "c00")).To(BeNil())
			e.Expect(e.get("v1", "ConfigMap", ns, "pre-delete")).NotTo(BeNil(), "the hook ran")
		})
	}
}

// TestRequests holds the number of requests of an add-on with many objects that
// are ready at once, when kinds are known already.
func TestRequests(t *testing.T) {
	const n = 40
	e, ns := alone(t)
	many := func(version, value string) chart {
		c := chart{version: version}
		for i := range n {
			c.manifest += configMap(fmt.Sprintf("c%02d", i), value)
		}
		return c
	}
	warm := e.wantNamed("warm", ns, chart{version: "1", manifest: configMap("warm", "x")})
	e.install(warm)

	measure := func(what string, requests, writes int, f func()) {
		t.Helper()
		e.meter.reset()
		f()
		r, w := e.meter.total()
		t.Logf("%s: %d requests, of them %d writes", what, r, w)
		e.Expect(r).To(BeNumerically("<=", requests), what)
		e.Expect(w).To(BeNumerically("<=", writes), what)
	}
	want := e.want(ns, many("1", "a"))
	// Records and namespace; a write for each object; the record, pending and deployed.
	measure("install", 2+n+2, n+2, func() { e.install(want) })
	measure("unchanged", 1, 0, func() { e.install(want) })
	// LIST; the old record is read twice and written once; one write for each object; the new record.
	measure("upgrade", 1+3+n+2, n+3, func() { e.install(e.want(ns, many("2", "b"))) })
	// As above, but a look at each of the objects that stay as they are in place of a write.
	one := many("3", "b")
	one.manifest = strings.Replace(one.manifest, `key: "b"`, `key: "c"`, 1)
	measure("upgrade of one object", 1+3+n+2, 1+3, func() { e.install(e.want(ns, one)) })

	measure("repair", 2+2*n, n, func() { _, _ = e.repair(want.Release) })
	hooked := e.want(ns, chart{version: "1", manifest: configMap("hooked", "x"), hooks: []job.Hook{
		{Name: "before", Kind: "ConfigMap", Path: "demo/before", Manifest: configMap("before", "x"), Events: []string{"pre-install"}, DeletePolicies: []string{"before-hook-creation", "hook-succeeded"}},
		{Name: "later", Kind: "ConfigMap", Path: "demo/later", Manifest: configMap("later", "x"), Events: []string{"pre-install"}, Weight: 1, DeletePolicies: []string{"hook-succeeded"}},
	}})
	hooked.Name = "hooked"
	// As above; a write and a deletion for each hook's object; the record when they are done.
	measure("hooks", 2+1+2+2*2+1, 1+2+2*2+1, func() { e.install(hooked) })
	e.Expect(e.get("v1", "ConfigMap", ns, "before")).To(BeNil())
	// A look, a deletion and a last look for each object, and two watches.
	measure("remove", 3*n+12, n+4, func() { e.remove(want.Release) })
}
