// SPDX-License-Identifier: Apache-2.0

package render

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

// slotTest lets renderings wait, and notes in which order they get a slot.
type slotTest struct {
	*slots
	granted chan string
	release map[string]chan struct{}
}

func newSlotTest(n int) *slotTest {
	return &slotTest{slots: newSlots(n), granted: make(chan string, 100), release: map[string]chan struct{}{}}
}

// ask waits for a slot, until it is in line. Its name is "namespace/cluster/anything".
func (s *slotTest) ask(t *testing.T, name string) {
	t.Helper()
	s.mu.Lock()
	before := len(s.waiting) - s.free
	s.mu.Unlock()
	parts, end := strings.Split(name, "/"), make(chan struct{})
	s.release[name] = end
	go func() {
		release, err := s.acquire(WithTenant(t.Context(), parts[0], parts[1]), nil)
		if err != nil {
			return
		}
		s.granted <- name
		<-end
		release()
	}()
	deadline := time.After(30 * time.Second)
	for {
		s.mu.Lock()
		now := len(s.waiting) - s.free
		s.mu.Unlock()
		if now > before {
			return
		}
		select {
		case <-deadline:
			t.Fatal("it isn't in line")
		case <-time.After(time.Millisecond):
		}
	}
}

func (s *slotTest) next(t *testing.T, want string) {
	t.Helper()
	select {
	case got := <-s.granted:
		if got != want {
			t.Fatalf("%s got the slot, want %s", got, want)
		}
	case <-time.After(30 * time.Second):
		t.Fatalf("nobody got a slot, want %s", want)
	}
}

// end ends a rendering, and waits for who comes next.
func (s *slotTest) end(t *testing.T, name, next string) {
	t.Helper()
	close(s.release[name])
	s.next(t, next)
}

func TestNamespaceHasHalfOfTheSlotsWhileOthersWait(t *testing.T) {
	s := newSlotTest(2)
	for _, name := range []string{"a/1/x", "a/2/x"} { // nobody else waits
		s.ask(t, name)
		s.next(t, name)
	}
	for _, name := range []string{"a/3/x", "a/4/x", "b/1/x", "b/1/y"} {
		s.ask(t, name)
	}
	s.end(t, "a/1/x", "b/1/x")
	s.end(t, "a/2/x", "a/3/x")
	s.end(t, "b/1/x", "b/1/y")
	s.end(t, "b/1/y", "a/4/x")
	for _, name := range []string{"a/3/x", "a/4/x"} {
		close(s.release[name])
	}
}

func TestClusterHasAQuarterOfTheSlotsWhileOthersWait(t *testing.T) {
	s := newSlotTest(8)
	for _, name := range []string{"a/1/1", "a/1/2", "a/1/3", "b/1/1", "b/1/2", "b/2/1", "b/2/2", "c/1/1"} {
		s.ask(t, name)
		s.next(t, name)
	}
	for _, name := range []string{"a/1/4", "a/2/1", "c/2/1"} {
		s.ask(t, name)
	}
	s.end(t, "b/1/1", "a/2/1")
	s.end(t, "b/1/2", "c/2/1")
	s.end(t, "b/2/1", "a/1/4")
	for _, name := range []string{"a/1/1", "a/1/2", "a/1/3", "a/1/4", "b/2/2", "c/1/1", "c/2/1", "a/2/1"} {
		close(s.release[name])
	}
}

func TestWhoWaitsNoMoreTakesNoSlot(t *testing.T) {
	s := newSlotTest(1)
	s.ask(t, "a/1/x")
	s.next(t, "a/1/x")
	ctx, cancel := context.WithCancelCause(t.Context())
	ended := errors.New("ended")
	cancel(ended)
	if _, err := s.acquire(ctx, nil); !errors.Is(err, ended) {
		t.Errorf("got %v", err)
	}
	closing := make(chan struct{})
	close(closing)
	if _, err := s.acquire(t.Context(), closing); !errors.Is(err, ErrClosed) {
		t.Errorf("got %v", err)
	}
	s.ask(t, "b/1/x")
	s.end(t, "a/1/x", "b/1/x")
	close(s.release["b/1/x"])
}

// What took all the time of a worker isn't tried again at once, by whomever; what differs is.
func TestKilledRenderingsArePaused(t *testing.T) {
	r := newRenderer(t, func(o *Options) { o.Timeout = 500 * time.Millisecond })
	now := time.Now()
	r.pauses.now = func() time.Time { return now }
	spin := requestFor(template1("{{ range until 100000 }}{{ range until 100000 }}{{ end }}{{ end }}"))
	killed := func() bool {
		before := r.pids()
		_, err := r.Chart(t.Context(), spin)
		wantReason(t, err, ReasonRenderTimeout)
		after := r.pids()
		return len(before) == 0 || len(after) == 0
	}
	if !killed() {
		t.Error("the first wasn't tried")
	}
	for pause := firstPause; pause <= 4*firstPause; pause *= 2 {
		mustRender(t, r) // a worker is there now
		now = now.Add(pause - time.Second)
		if killed() {
			t.Errorf("it was tried within %s", pause)
		}
		now = now.Add(time.Second)
		if !killed() {
			t.Errorf("it wasn't tried after %s", pause)
		}
	}
}
