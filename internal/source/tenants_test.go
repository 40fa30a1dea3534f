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

	"github.com/cluster-chandler/chandler/internal/artifact/opener"
	"github.com/cluster-chandler/chandler/internal/shares"
	"github.com/cluster-chandler/chandler/internal/source"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/targz"
)

// One tenant has twelve repositories at hosts that send next to nothing, and 64 bundles to open.
// Another one's chart waits for none of the hosts, and for few of the bundles.
func TestOneTenantDelaysNoOther(t *testing.T) {
	var held atomic.Int32
	over := make(chan struct{})
	var slow []string
	for range 2 { // each host gets eight requests at once, at most
		slow = append(slow, serving(t, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, "#")
			w.(http.Flusher).Flush()
			held.Add(1)
			defer held.Add(-1)
			select {
			case <-r.Context().Done():
			case <-over:
			}
		}).URL)
	}
	t.Cleanup(func() { close(over) })
	archive := targz.Chart(t)
	good := serving(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "index.yaml") {
			_, _ = io.WriteString(w, oneVersion("demo.tgz"))
			return
		}
		_, _ = w.Write(archive)
	})
	sources, _ := remoteSources(t, source.Options{Store: storeAt(t.TempDir())})
	mallory, end := context.WithCancel(shares.WithTenant(t.Context(), "mallory", ""))
	var jobs sync.WaitGroup
	defer jobs.Wait()
	defer end()
	for i := range 12 {
		ref := plainly(inRepository(fmt.Sprintf("%s/%d", slow[i%2], i), "1.0.0"))
		ref.Namespace = "mallory"
		go func() { _, _ = sources.Resolve(mallory, ref) }()
	}
	for held.Load() < 12 {
		time.Sleep(time.Millisecond)
	}
	const bundles = 64
	var opened, begun atomic.Int32
	for i := range bundles {
		jobs.Go(func() {
			document := fmt.Sprintf("n: %d\nx:\n", i) + strings.Repeat("- {a: b, c: [d, e, f]}\n", 10_000)
			begun.Add(1)
			_, _ = workers.Open(mallory, &opener.Job{YAML: &opener.YAML{Data: []byte(document)}})
			opened.Add(1)
		})
	}
	for begun.Load() < bundles || opened.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	ref := plainly(inRepository(good.URL, "1.0.0"))
	ref.Namespace = "victim"
	digest, err := sources.Resolve(shares.WithTenant(t.Context(), "victim", ""), ref)
	if err == nil {
		_, err = sources.Fetch(shares.WithTenant(t.Context(), "victim", ""), ref, digest)
	}
	must.Succeed(t, err)
	before := opened.Load()
	t.Logf("%d of %d bundles came first", before, bundles)
	if before > bundles/2 || held.Load() < 12 {
		t.Errorf("%d of %d bundles, and %d of 12 slow answers, came first", before, bundles, 12-held.Load())
	}
}

// TestOneTenantDelaysNoOtherByMoreThanTwice has charts of a tenant take at most twice their time alone.
// Meanwhile twelve addresses of another tenant send next to nothing, and always 64 of its bundles are to be opened.
func TestOneTenantDelaysNoOtherByMoreThanTwice(t *testing.T) {
	if os.Getenv("CHANDLER_E2E_HOSTILE") == "" {
		t.Skip("it measures times, and needs a machine that does nothing else: make test-hostile")
	}
	const charts, bundles, answers = 9, 64, 12
	archive := targz.Chart(t, targz.Entry{Name: "demo/values.yaml", Data: strings.Repeat("- {a: b, c: [d, e, f]}\n", 10_000)})
	good := serving(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "index.yaml") {
			_, _ = io.WriteString(w, oneVersion("demo.tgz"))
			return
		}
		_, _ = w.Write(archive)
	})
	var held atomic.Int32
	over := make(chan struct{})
	var slow []string
	for range 2 { // each host gets eight requests at once, at most
		slow = append(slow, serving(t, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, "#")
			w.(http.Flusher).Flush()
			held.Add(1)
			select {
			case <-r.Context().Done():
			case <-over:
			}
		}).URL)
	}
	t.Cleanup(func() { close(over) })
	sources, _ := remoteSources(t, source.Options{Store: storeAt(t.TempDir())})
	repositories := 0
	median := func() time.Duration {
		t.Helper()
		var took []time.Duration
		for range charts {
			repositories++
			ref := plainly(inRepository(fmt.Sprintf("%s/%d", good.URL, repositories), "1.0.0"))
			ref.Namespace = "victim"
			victim, begun := shares.WithTenant(t.Context(), "victim", ""), time.Now()
			digest, err := sources.Resolve(victim, ref)
			if err == nil {
				_, err = sources.Fetch(victim, ref, digest)
			}
			must.Succeed(t, err)
			took = append(took, time.Since(begun))
		}
		slices.Sort(took)
		return took[charts/2]
	}
	alone := median()

	mallory, end := context.WithCancel(shares.WithTenant(t.Context(), "mallory", ""))
	var jobs sync.WaitGroup
	defer jobs.Wait()
	defer end()
	for i := range answers {
		ref := plainly(inRepository(fmt.Sprintf("%s/%d", slow[i%2], i), "1.0.0"))
		ref.Namespace = "mallory"
		jobs.Go(func() { _, _ = sources.Resolve(mallory, ref) })
	}
	var opened atomic.Int32
	for i := range bundles {
		document := fmt.Sprintf("n: %d\nx:\n", i) + strings.Repeat("- {a: b, c: [d, e, f]}\n", 10_000)
		jobs.Go(func() {
			for mallory.Err() == nil { // the next one comes as soon as one is opened
				_, _ = workers.Open(mallory, &opener.Job{YAML: &opener.YAML{Data: []byte(document)}})
				opened.Add(1)
			}
		})
	}
	for held.Load() < answers || opened.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	before := opened.Load()
	beside := median()
	t.Logf("a chart takes %s alone, and %s beside %d bundles that were opened", alone, beside, opened.Load()-before)
	if opened.Load() == before || beside > 2*alone {
		t.Errorf("a chart takes %s alone, and %s beside another tenant's %d bundles", alone, beside, opened.Load()-before)
	}
}
