// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/cluster-chandler/chandler/internal/instance/gate"
)

const patience = 10 * time.Second

// runnable says when it starts, and ends with the context or with an error.
type runnable struct {
	started, ended chan struct{}
	fail           chan error
}

func newRunnable() *runnable {
	return &runnable{started: make(chan struct{}), ended: make(chan struct{}), fail: make(chan error, 1)}
}

func (r *runnable) Start(ctx context.Context) error {
	close(r.started)
	defer close(r.ended)
	select {
	case <-ctx.Done():
		return nil
	case err := <-r.fail:
		return err
	}
}

func TestGate(t *testing.T) {
	g := NewWithT(t)
	gate := gate.New(nil)
	first, second, late := newRunnable(), newRunnable(), newRunnable()
	g.Expect(gate.Add(first)).To(Succeed())
	g.Expect(gate.Add(second)).To(Succeed())
	g.Consistently(first.started).WithTimeout(100 * time.Millisecond).ShouldNot(BeClosed())

	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- gate.Run(ctx) }()
	g.Eventually(first.started).WithTimeout(patience).Should(BeClosed())
	g.Eventually(second.started).WithTimeout(patience).Should(BeClosed())
	g.Expect(gate.Add(late)).To(Succeed())
	g.Eventually(late.started).WithTimeout(patience).Should(BeClosed(), "the gate is open")
	first.fail <- nil
	g.Eventually(first.ended).WithTimeout(patience).Should(BeClosed())
	g.Consistently(done).WithTimeout(100*time.Millisecond).ShouldNot(Receive(), "one that ends well stops nobody")

	cancel()
	g.Eventually(done).WithTimeout(patience).Should(Receive(BeNil()))
	g.Expect(second.ended).To(BeClosed(), "it waits for all")
	g.Expect(late.ended).To(BeClosed())
	g.Expect(gate.Add(newRunnable())).NotTo(Succeed())
	g.Expect(gate.Run(t.Context())).NotTo(Succeed())
}

// One that fails stops all others, as in a manager.
func TestFailure(t *testing.T) {
	g := NewWithT(t)
	gate := gate.New(nil)
	bad, other := newRunnable(), newRunnable()
	for _, r := range []manager.Runnable{bad, other} {
		g.Expect(gate.Add(r)).To(Succeed())
	}
	bad.fail <- errors.New("can't")
	g.Expect(gate.Run(t.Context())).To(MatchError("can't"))
	g.Expect(other.ended).To(BeClosed())
}
