// SPDX-License-Identifier: Apache-2.0

package refusal

import (
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/source/flight"
)

// steps of one reference whose content is refused.
type steps struct {
	*testing.T
	*Refusals
	clock *clocktesting.FakeClock
	woken int
	route flight.Route
}

func begin(t *testing.T) *steps {
	clock := clocktesting.NewFakeClock(time.Now())
	return &steps{T: t, Refusals: New(clock), clock: clock, route: flight.Route{Name: "digest of a", Credentials: "one"}}
}

func (s *steps) refuse(digest string) time.Duration {
	ctx := flight.WithWaker(s.Context(), flight.Waiter{Kind: "me"}, func() { s.woken++ })
	return s.Note(ctx, s.route, "a", digest)
}

func (s *steps) expect(due bool, woken int) {
	s.Helper()
	if due && !s.Waits(s.route.Name) {
		s.Error("it is due, and not waited for")
	}
	if got := s.Due(s.route); got != due || s.woken != woken {
		s.Errorf("due: %t, woken: %d; want %t, %d", got, s.woken, due, woken)
	}
}

// While the answer stays the refused one, it is asked for after times that grow, and
// nobody is woken.
func TestTimesGrow(t *testing.T) {
	s := begin(t)
	left := s.refuse("old")
	for try := range 12 {
		s.clock.Step(left - 1)
		s.expect(false, 0)
		s.clock.Step(1)
		s.expect(true, 0)
		s.Asked(s.route, "old")
		usual := min(failure.FirstRetry<<(try+1), failure.MaxRetry)
		if left = s.refuse("old"); left < usual || left > usual+usual/4 {
			t.Errorf("try %d: again after %s, want %s and some", try, left, usual)
		}
	}
}

// Another answer wakes whoever was told, and isn't asked for again unless it is refused, too:
// then the times go on to grow.
func TestAnotherAnswer(t *testing.T) {
	s := begin(t)
	s.clock.Step(s.refuse("old"))
	s.Asked(s.route, "new")
	s.expect(false, 1)
	if s.Waits(s.route.Name) {
		t.Error("it still waits for another answer")
	}
	if !s.Has(s.route.Name, "old") || s.Has(s.route.Name, "new") {
		t.Error("the wrong one is known as refused")
	}
	if left := s.refuse("new"); left < 2*failure.FirstRetry {
		t.Errorf("it is asked again after %s", left)
	}
	s.Asked(s.route, "")
	s.expect(false, 1)
}

// What was of use in the end isn't refused any more.
func TestOfUse(t *testing.T) {
	s := begin(t)
	s.clock.Step(s.refuse("old"))
	s.Used(s.route.Name, "old")
	s.expect(false, 1)
	if s.Has(s.route.Name, "old") {
		t.Error("it counts as refused")
	}
}

// Other credentials, and who says that it was mended, make it due at once.
func TestDueAtOnce(t *testing.T) {
	s := begin(t)
	s.refuse("old")
	s.route.Credentials = "two"
	s.expect(true, 0)
	s.Asked(s.route, "old")
	s.expect(false, 0)
	s.Reconsider("b")
	s.expect(false, 0)
	s.Reconsider("a")
	s.expect(true, 1)
}

// One reference with ever other content takes no more than its share of memory.
func TestManyDigests(t *testing.T) {
	s := begin(t)
	for i := range 1000 {
		s.refuse(string(rune('a' + i)))
	}
	if known, _ := s.of.Get(s.route.Name); known.digests.Len() > maxRefused {
		t.Errorf("%d digests are remembered", known.digests.Len())
	}
}
