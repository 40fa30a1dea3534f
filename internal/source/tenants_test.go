// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cluster-chandler/chandler/fleet/budget"
	"github.com/cluster-chandler/chandler/internal/artifact/opener"
	"github.com/cluster-chandler/chandler/internal/source"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/targz"
)

// slowAnswers and bundles are how much of it one tenant asks for.
const slowAnswers, bundles = 12, 64

// siege has a tenant with repositories at hosts that send next to nothing, and another one with a good repository.
type siege struct {
	sources *source.Sources
	good    string
	slow    []string
	held    atomic.Int32 // slow answers under way
	jobs    sync.WaitGroup
	charts  int // of the victim
}

func newSiege(t *testing.T, archive []byte) *siege {
	t.Helper()
	s := &siege{}
	over := make(chan struct{})
	for range 2 { // each host gets eight requests at once, at most
		s.slow = append(s.slow, serving(t, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, "#")
			w.(http.Flusher).Flush()
			s.held.Add(1)
			defer s.held.Add(-1)
			select {
			case <-r.Context().Done():
			case <-over:
			}
		}).URL)
	}
	t.Cleanup(func() { close(over) })
	s.good = serving(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "index.yaml") {
			_, _ = io.WriteString(w, oneVersion("demo.tgz"))
			return
		}
		_, _ = w.Write(archive)
	}).URL
	s.sources, _ = remoteSources(t, source.Options{Store: storeAt(t.TempDir())})
	return s
}

// begin asks for what the slow hosts have, as a tenant whose context it returns.
func (s *siege) begin(t *testing.T) context.Context {
	t.Helper()
	mallory, end := context.WithCancel(budget.WithTenant(t.Context(), budget.Tenant{Namespace: "mallory"}))
	t.Cleanup(s.jobs.Wait)
	t.Cleanup(end)
	for i := range slowAnswers {
		ref := plainly(inRepository(fmt.Sprintf("%s/%d", s.slow[i%2], i), "1.0.0"))
		ref.Namespace = "mallory"
		s.jobs.Go(func() { _, _ = s.sources.Resolve(mallory, ref) })
	}
	for s.held.Load() < slowAnswers {
		time.Sleep(time.Millisecond)
	}
	return mallory
}

// fetch fetches another chart of the victim.
func (s *siege) fetch(t *testing.T) {
	t.Helper()
	s.charts++
	ref := plainly(inRepository(fmt.Sprintf("%s/%d", s.good, s.charts), "1.0.0"))
	ref.Namespace = "victim"
	victim := budget.WithTenant(t.Context(), budget.Tenant{Namespace: "victim"})
	digest, err := s.sources.Resolve(victim, ref)
	if err == nil {
		_, err = s.sources.Fetch(victim, ref, digest)
	}
	must.Succeed(t, err)
}

// large is YAML that takes a worker some time.
var large = strings.Repeat("- {a: b, c: [d, e, f]}\n", 10_000)

func open(ctx context.Context, i int) {
	_, _ = workers.Open(ctx, &opener.Job{YAML: &opener.YAML{Data: []byte(fmt.Sprintf("n: %d\nx:\n", i) + large)}})
}

// One tenant has twelve repositories at hosts that send next to nothing, and 64 bundles to open.
// Another one's chart waits for none of the hosts, and for few of the bundles.
func TestOneTenantDelaysNoOther(t *testing.T) {
	s := newSiege(t, targz.Chart(t))
	mallory := s.begin(t)
	var opened, begun atomic.Int32
	for i := range bundles {
		s.jobs.Go(func() {
			begun.Add(1)
			open(mallory, i)
			opened.Add(1)
		})
	}
	for begun.Load() < bundles || opened.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	s.fetch(t)
	before := opened.Load()
	t.Logf("%d of %d bundles came first", before, bundles)
	if before > bundles/2 || s.held.Load() < slowAnswers {
		t.Errorf("%d of %d bundles, and %d of 12 slow answers, came first", before, bundles, 12-s.held.Load())
	}
}

// TestOneTenantDelaysNoOtherByMoreThanTwice has charts of a tenant take at most twice their time alone.
// Meanwhile twelve addresses of another tenant send next to nothing, and always 64 of its bundles are to be opened.
func TestOneTenantDelaysNoOtherByMoreThanTwice(t *testing.T) {
	if os.Getenv("CHANDLER_E2E_HOSTILE") == "" {
		t.Skip("it measures times, and needs a machine that does nothing else: make test-hostile")
	}
	s := newSiege(t, targz.Chart(t, targz.Entry{Name: "demo/values.yaml", Data: large}))
	median := func() time.Duration {
		const charts = 9
		var took []time.Duration
		for range charts {
			begun := time.Now()
			s.fetch(t)
			took = append(took, time.Since(begun))
		}
		slices.Sort(took)
		return took[charts/2]
	}
	alone := median()

	mallory := s.begin(t)
	var opened atomic.Int32
	for i := range bundles {
		s.jobs.Go(func() {
			for mallory.Err() == nil { // the next one comes as soon as one is opened
				open(mallory, i)
				opened.Add(1)
			}
		})
	}
	for opened.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	before := opened.Load()
	beside := median()
	t.Logf("a chart takes %s alone, and %s beside %d bundles that were opened", alone, beside, opened.Load()-before)
	if opened.Load() == before || beside > 2*alone {
		t.Errorf("a chart takes %s alone, and %s beside another tenant's %d bundles", alone, beside, opened.Load()-before)
	}
}
