// SPDX-License-Identifier: Apache-2.0

package shares_test

import (
	"strings"
	"testing"

	"github.com/cluster-chandler/chandler/internal/shares"
)

// line has shares by name, "namespace/cluster/anything".
type line struct {
	*shares.Shares
	waiting map[string]*shares.Share
}

func lineFor(s *shares.Shares) *line { return &line{s, map[string]*shares.Share{}} }

func (l *line) ask(units int64, names ...string) {
	for _, name := range names {
		parts := strings.Split(name, "/")
		l.waiting[name] = l.Join(shares.Tenant{Namespace: parts[0], Cluster: parts[1]}, units)
	}
}

// has expects that these have units, and no others.
func (l *line) has(t *testing.T, names ...string) {
	t.Helper()
	has := map[string]bool{}
	for _, name := range names {
		has[name] = true
	}
	for name, share := range l.waiting {
		select {
		case <-share.Granted():
			if !has[name] {
				t.Errorf("%s has units", name)
			}
		default:
			if has[name] {
				t.Errorf("%s waits", name)
			}
		}
	}
}

func (l *line) end(names ...string) {
	for _, name := range names {
		l.waiting[name].Release()
		l.waiting[name].Release() // twice is once
		delete(l.waiting, name)
	}
}

func TestNamespaceHasHalfWhileOthersWait(t *testing.T) {
	l := lineFor(shares.New(2))
	l.ask(1, "a/1/x", "a/2/x") // nobody else waits
	l.has(t, "a/1/x", "a/2/x")
	l.ask(1, "a/3/x", "a/4/x", "b/1/x", "b/1/y")
	l.has(t, "a/1/x", "a/2/x")
	l.end("a/1/x")
	l.has(t, "a/2/x", "b/1/x")
	l.end("a/2/x")
	l.has(t, "b/1/x", "a/3/x")
	l.end("b/1/x")
	l.has(t, "b/1/y", "a/3/x")
	l.end("b/1/y")
	l.has(t, "a/4/x", "a/3/x")
}

func TestClusterHasAQuarterWhileOthersWait(t *testing.T) {
	l := lineFor(shares.New(8))
	l.ask(1, "a/1/1", "a/1/2", "a/1/3", "b/1/1", "b/1/2", "b/2/1", "b/2/2", "c/1/1", "a/1/4", "a/2/1", "c/2/1")
	l.has(t, "a/1/1", "a/1/2", "a/1/3", "b/1/1", "b/1/2", "b/2/1", "b/2/2", "c/1/1")
	l.end("b/1/1")
	l.has(t, "a/1/1", "a/1/2", "a/1/3", "b/1/2", "b/2/1", "b/2/2", "c/1/1", "a/2/1")
	l.end("b/1/2")
	l.has(t, "a/1/1", "a/1/2", "a/1/3", "b/2/1", "b/2/2", "c/1/1", "a/2/1", "c/2/1")
	l.end("b/2/1")
	l.has(t, "a/1/1", "a/1/2", "a/1/3", "b/2/2", "c/1/1", "a/2/1", "c/2/1", "a/1/4")
}

func TestWhoWaitsNoMoreTakesNone(t *testing.T) {
	l := lineFor(shares.New(1))
	l.ask(1, "a/1/x", "a/1/y", "b/1/x")
	l.end("a/1/y")
	l.has(t, "a/1/x")
	l.end("a/1/x")
	l.has(t, "b/1/x")
}

// A tenant's turn comes after a job of another, however many jobs that has.
func TestManyJobsOfOneTenantDelayNoOther(t *testing.T) {
	l := lineFor(shares.New(8))
	for i := range 64 {
		l.ask(1, "mallory//"+strings.Repeat("x", i))
	}
	l.ask(1, "victim//x", "victim/prod/x")
	l.end("mallory//")
	l.end("mallory//x")
	for _, name := range []string{"victim//x", "victim/prod/x"} {
		select {
		case <-l.waiting[name].Granted():
		default:
			t.Errorf("%s still waits", name)
		}
	}
}

func TestHalfIsReservedForOthers(t *testing.T) {
	l := lineFor(shares.NewReserved(100))
	l.ask(30, "a/1/x", "a/1/y", "a/2/x")
	l.has(t, "a/1/x") // the others would be beyond half
	l.ask(20, "a/1/z")
	l.has(t, "a/1/x", "a/1/z")
	l.ask(1000, "b/1/x") // is cut to half
	l.has(t, "a/1/x", "a/1/z", "b/1/x")
	l.ask(1, "c/1/x")
	l.has(t, "a/1/x", "a/1/z", "b/1/x")
	l.end("a/1/x")
	l.has(t, "a/1/y", "a/1/z", "b/1/x")
	l.end("b/1/x")
	l.has(t, "a/1/y", "a/1/z", "c/1/x")
}

// A large share isn't passed by small ones for ever.
func TestLargeClaimHasItsTurn(t *testing.T) {
	l := lineFor(shares.NewReserved(100))
	l.ask(50, "a/1/x")
	l.ask(20, "b/1/x")
	l.ask(50, "c/1/x")
	l.ask(20, "d/1/x")
	l.has(t, "a/1/x", "b/1/x")
	l.end("b/1/x")
	l.has(t, "a/1/x", "c/1/x")
	l.end("a/1/x")
	l.has(t, "c/1/x", "d/1/x")
}

// A namespace that has nothing needn't wait for what others have, however long that takes. One that has something does.
func TestSpareIsForANamespaceThatHasNone(t *testing.T) {
	l := lineFor(shares.NewWithSpare(2))
	l.ask(1, "a/1/x", "a/2/x", "a/3/x")
	l.has(t, "a/1/x", "a/2/x")
	l.ask(1, "b/1/x", "b/1/y", "c/1/x")
	l.has(t, "a/1/x", "a/2/x", "b/1/x")
	l.end("a/1/x")
	l.has(t, "a/2/x", "b/1/x", "c/1/x")
	l.end("c/1/x")
	l.has(t, "a/2/x", "b/1/x")
	l.end("a/2/x")
	l.has(t, "b/1/x", "a/3/x")
	l.end("b/1/x")
	l.has(t, "b/1/y", "a/3/x")
}

// Large shares don't lose the spare unit to those that came before them and have some.
func TestSpareOfLargeClaims(t *testing.T) {
	l := lineFor(shares.NewWithSpare(8))
	l.ask(8, "a/1/x")
	l.ask(2, "a/1/y", "b/1/x")
	l.has(t, "a/1/x")
	l.ask(1, "c/1/x")
	l.has(t, "a/1/x", "c/1/x")
}
