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
