// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
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
