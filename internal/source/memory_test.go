// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cluster-chandler/chandler/fleet/budget"
	"github.com/cluster-chandler/chandler/internal/artifact/opener"
	"github.com/cluster-chandler/chandler/internal/source"
	"github.com/cluster-chandler/chandler/test/must"
)

// busy is an opener whose workers are busy: it keeps large indexes until it is let go.
type busy struct {
	opener.Opener
	kept atomic.Int64 // bytes
	let  chan struct{}
}

// Open implements opener.Opener.
func (b *busy) Open(ctx context.Context, job *opener.Job) (*opener.Opened, error) {
	if job.Index != nil && len(job.Index.Data) > 1<<20 {
		b.kept.Add(int64(len(job.Index.Data)))
		<-b.let
		b.kept.Add(-int64(len(job.Index.Data)))
	}
	return b.Opener.Open(ctx, job)
}

// TestAnswersCountUntilAWorkerHasAnswered has a tenant with twelve large indexes while all workers are busy. It has no more
// of them at once than its memory allows, another one's chart waits for none, and in the end all of them are read.
func TestAnswersCountUntilAWorkerHasAnswered(t *testing.T) {
	const answers, length, room = 12, 8 << 20, 24 << 20
	index := oneVersion("demo.tgz") + strings.Repeat("# "+strings.Repeat("x", 1021)+"\n", length>>10)
	large := serving(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", strconv.Itoa(length))
		_, _ = io.WriteString(w, ("# " + r.URL.Path + "\n" + index)[:length])
	}).URL
	small := serving(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, oneVersion("demo.tgz")) }).URL
	memory := budget.New(budget.Limits{All: 2 * room, Namespace: room})
	workers := &busy{Opener: workers, let: make(chan struct{})}
	sources, _ := remoteSources(t, source.Options{Memory: memory, Opener: workers})
	resolve := func(namespace, url string) error {
		ref := plainly(inRepository(url, "1.0.0"))
		ref.Namespace = namespace
		_, err := sources.Newest(t.Context(), ref, rangeOf(t, ">=1.0.0"), time.Time{})
		return err
	}

	var all sync.WaitGroup
	for i := range answers {
		all.Go(func() {
			if err := resolve("mallory", fmt.Sprintf("%s/%d", large, i)); err != nil {
				t.Errorf("index %d: %v", i, err)
			}
		})
	}
	for workers.kept.Load() <= room && (workers.kept.Load() == 0 || memory.Usage().Waiting == 0) {
		time.Sleep(time.Millisecond)
	}
	must.Succeed(t, resolve("victim", small))
	if kept := workers.kept.Load(); kept > room {
		t.Errorf("%d MiB of answers wait for workers, more than the %d MiB of a namespace", kept>>20, room>>20)
	}
	close(workers.let)
	all.Wait()
	if usage := memory.Usage(); usage.Claimed != 0 {
		t.Errorf("in the end %+v is held", usage)
	}
}
