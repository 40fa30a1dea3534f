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
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/shares"
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
		o, err := e.d.Ensure(shares.WithTenant(e.ctx, ns, ns), e.target, want)
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
