// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/utils/clock"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/fleet/budget"
	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/artifact/opener"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/source"
	"github.com/cluster-chandler/chandler/internal/source/auth"
	"github.com/cluster-chandler/chandler/internal/source/local"
	"github.com/cluster-chandler/chandler/internal/source/reference"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/targz"
)

// busy is an opener whose workers are busy: it keeps what is large until it is let go.
type busy struct {
	opener.Opener
	kept atomic.Int64 // bytes
	jobs atomic.Int64
	let  chan struct{}
}

// Open implements opener.Opener.
func (b *busy) Open(ctx context.Context, job *opener.Job) (*opener.Opened, error) {
	b.jobs.Add(1)
	var bytes int64
	switch {
	case job.Index != nil:
		bytes = int64(len(job.Index.Data))
	case job.Unpack != nil:
		bytes = job.Unpack.Content.Bytes()
	}
	if bytes > 1<<20 {
		b.kept.Add(bytes)
		<-b.let
		b.kept.Add(-bytes)
	}
	return b.Opener.Open(ctx, job)
}

// TestAnswersCountUntilAWorkerHasAnswered has a tenant with twelve large indexes while all workers are busy. It has no more
// of them at once than its memory allows, another one's chart waits for none, and in the end all of them are read.
func TestAnswersCountUntilAWorkerHasAnswered(t *testing.T) {
	long.InCI(t)
	const answers, length, room = 12, 8 << 20, 40 << 20
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

// TestContentAtHandCounts has a tenant ask for twelve archives that are on disk, while all workers are busy.
func TestContentAtHandCounts(t *testing.T) {
	long.InCI(t)
	const archives, room = 12, 24 << 20
	random := rand.NewChaCha8([32]byte{})
	var refs []reference.Reference
	root, cache := t.TempDir(), t.TempDir()
	host := serving(t, func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, filepath.Join(root, r.URL.Path)) }).URL
	for i := range archives {
		noise := make([]byte, 3<<20)
		_, _ = random.Read(noise) // it can't be compressed
		archive := targz.Chart(t, targz.Entry{Name: "demo/noise", Data: string(noise)})
		name := fmt.Sprintf("%d.tgz", i)
		write(t, filepath.Join(root, name), string(archive))
		refs = append(refs, reference.ChartOf("mallory", addonsv1.ChartSource{Path: name}), atAddress(host+"/"+name, digestOf(archive)))
		refs[len(refs)-1].Namespace = "mallory"
	}
	before, _ := remoteSources(t, source.Options{Store: storeAt(cache)})
	for _, ref := range refs[1:] {
		if ref.Remote() {
			expectFetched(t, before, ref)
		}
	}
	for name, isRemote := range map[string]bool{"in the artifact root": false, "in the cache": true} {
		t.Run(name, func(t *testing.T) {
			memory := budget.New(budget.Limits{All: 2 * room, Namespace: room})
			workers := &busy{Opener: workers, let: make(chan struct{})}
			sources, _ := remoteSources(t, source.Options{
				Memory: memory, Opener: workers, ArtifactRoot: root, Store: storeAt(cache), Limits: artifact.Limits{TotalBytes: 12 << 20},
			})
			var all sync.WaitGroup
			for _, ref := range refs {
				if ref.Remote() == isRemote {
					all.Go(func() { expectFetched(t, sources, ref) })
				}
			}
			for workers.jobs.Load()+int64(memory.Usage().Waiting) < archives {
				time.Sleep(time.Millisecond)
			}
			if kept := workers.kept.Load(); kept > room {
				t.Errorf("%d MiB wait for workers, more than the %d MiB of a namespace", kept>>20, room>>20)
			}
			if jobs := workers.jobs.Load(); jobs < 4 { // of 3 MiB each, beside one that may have 12
				t.Errorf("%d archives were read, of which there is room for more", jobs)
			}
			close(workers.let)
			all.Wait()
			if usage := memory.Usage(); usage.Claimed != 0 {
				t.Errorf("in the end %+v is held", usage)
			}
		})
	}
}

// TestBundlesTakeOneJob has a bundle opened: what it says of itself needs no second worker, for which its files would wait.
func TestBundlesTakeOneJob(t *testing.T) {
	for name, tc := range map[string]struct {
		metadata, reason string
	}{
		"a release":      {"metadataVersion: 1\n", ""},
		"no YAML":        {"\tx: [", ""},
		"many aliases":   {"x: &x " + strings.Repeat("x", 5<<10) + "\nl: [" + strings.Repeat("*x,", 100) + "]\n", failure.ArtifactTooLarge},
		"a bare archive": {"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			files := map[string]string{"stack/a.yaml": "a: 1\n"}
			if tc.metadata != "" {
				files["stack/metadata.yaml"] = tc.metadata
			}
			write(t, filepath.Join(root, "bundle.tgz"), string(targz.Files(t, files)))
			workers := &busy{Opener: workers}
			sources := newSources(t, source.Options{ArtifactRoot: root, Opener: workers})
			_, err := sources.OpenBundle(t.Context(), "team", &addonsv1.BundleSource{ArtifactSource: addonsv1.ArtifactSource{Path: "bundle.tgz"}})
			expectRefused(t, err, tc.reason)
			must.Equal(t, int64(1), workers.jobs.Load(), "jobs")
		})
	}
}

// TestBundlesCountWhileTheyAreOpen has two bundles open at once, with room for one. The other one comes again.
func TestBundlesCountWhileTheyAreOpen(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, "bundle.tgz"), string(targz.Files(t, map[string]string{"a": strings.Repeat("x", 3<<20)})))
	memory := budget.New(budget.Limits{All: 24 << 20, Namespace: 20 << 20})
	sources := newSources(t, source.Options{ArtifactRoot: root, Memory: memory, Limits: artifact.Limits{TotalBytes: 8 << 20}})
	ctx, release := budget.Holding(t.Context())
	bundle := &addonsv1.BundleSource{ArtifactSource: addonsv1.ArtifactSource{Path: "bundle.tgz"}}
	_, err := sources.OpenBundle(ctx, "team", bundle)
	must.Succeed(t, err)
	_, err = sources.OpenBundle(ctx, "team", bundle)
	expectRefused(t, err, failure.ArtifactPending)
	release()
	_, err = sources.OpenBundle(t.Context(), "team", bundle)
	must.Succeed(t, err)
}

// TestListsCountUntilTheyAreDone has a list come in two pages. What they are decoded to counts until both are read.
func TestListsCountUntilTheyAreDone(t *testing.T) {
	const tags = 5_000
	more, rest := make(chan struct{}), make(chan struct{})
	var page strings.Builder
	for i := range tags {
		fmt.Fprintf(&page, `,"1.%d.0"`, i)
	}
	text := `{"tags":["1.0.0"` + page.String() + `]}`
	memory := budget.New(budget.Limits{All: 24 << 20, Namespace: 20 << 20})
	host := serving(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("last") {
			close(more)
			<-rest
		} else {
			w.Header().Set("Link", `</v2/charts/demo/tags/list?last=x>; rel="next"`)
		}
		_, _ = io.WriteString(w, text)
	})
	sources, clock := remoteSources(t, source.Options{Memory: memory})
	done := make(chan error)
	go func() {
		_, err := newest(t, sources, of(">=1.0.0", plainly(inRegistry("oci://"+hostOf(host)+"/charts/demo", ""))), clock.Now())
		done <- err
	}()
	select {
	case <-more:
	case err := <-done:
		t.Fatal(err)
	}
	if usage := memory.Usage(); usage.Claimed < 4*int64(len(text)) {
		t.Errorf("after a page of %d bytes %+v is held", len(text), usage)
	}
	close(rest)
	must.Succeed(t, <-done)
	if usage := memory.Usage(); usage.Claimed != 0 || usage.Cached < tags*int64(len("1.1000.0")+16) {
		t.Errorf("in the end %+v is held", usage)
	}
}

// TestVersionsAreFoundOnce has lists that find no room beside each other. The version that was found in one is known all the same.
func TestVersionsAreFoundOnce(t *testing.T) {
	const tags, length = 20_000, 100
	var page strings.Builder
	for i := range tags {
		fmt.Fprintf(&page, `,"1.%d.0-%s"`, i, strings.Repeat("a", length))
	}
	text := `{"tags":["1.0.0"` + page.String() + `]}`
	var lists atomic.Int64
	host := serving(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/tags/list") {
			lists.Add(1)
		}
		w.Header().Set("Content-Length", strconv.Itoa(len(text)))
		_, _ = io.WriteString(w, text)
	})
	memory := budget.New(budget.Limits{All: 9 << 20, Namespace: 9 << 20}) // a list takes four times its text while it is read
	sources, clock := remoteSources(t, source.Options{Memory: memory})
	look := func(name, line string) {
		t.Helper()
		expectNewest(t, sources, of(line, plainly(inRegistry("oci://"+hostOf(host)+"/charts/"+name, ""))), clock.Now(), fmt.Sprintf("1.%d.0-%s", tags-1, strings.Repeat("a", length)))
	}
	look("one", ">=1.0.0-0")
	look("other", ">=1.0.0-0")
	look("one", ">=1.0.0-0")
	look("other", ">=1.0.0-0")
	must.Equal(t, int64(2), lists.Load(), "lists")
	look("one", ">=1.1.0-0")
	must.Equal(t, int64(3), lists.Load(), "lists, with another line")
	clock.Step(time.Second)
	look("one", ">=1.1.0-0")
	must.Equal(t, int64(4), lists.Load(), "lists, after a while")
}

// TestUnpackedContentCounts keeps a chart of a MiB, as a cache.
func TestUnpackedContentCounts(t *testing.T) {
	root, memory := t.TempDir(), budget.New(budget.Limits{})
	noise := make([]byte, 1<<20)
	_, _ = rand.NewChaCha8([32]byte{}).Read(noise)
	write(t, filepath.Join(root, "demo.tgz"), string(targz.Chart(t, targz.Entry{Name: "demo/noise", Data: string(noise)})))
	sources := newSources(t, source.Options{Memory: memory, ArtifactRoot: root})
	expectFetched(t, sources, reference.ChartOf("team", addonsv1.ChartSource{Path: "demo.tgz"}))
	if usage := memory.Usage(); usage.Cached < int64(len(noise)) || usage.Claimed != 0 {
		t.Errorf("after it is unpacked, %+v is held", usage)
	}
}

// TestPathsAndClientsCount has what is known of paths, and clients of hosts, count while they are kept.
func TestPathsAndClientsCount(t *testing.T) {
	memory := budget.New(budget.Limits{})
	tree, err := local.New(t.TempDir(), artifact.Limits{}.WithDefaults(), clock.RealClock{}, memory)
	must.Succeed(t, err)
	_, _ = tree.Resolve("none", artifact.KindChart)
	paths := memory.Usage().Cached
	access := auth.New(auth.Options{Memory: memory, AllowLoopback: true, Clock: clock.RealClock{}})
	_, err = auth.Ask(t.Context(), access, atAddress("http://127.0.0.1:1/a.tgz", ""), func(context.Context, *auth.Client) (string, error) { return "", nil })
	must.Succeed(t, err)
	if clients := memory.Usage().Cached - paths; paths < 128 || clients < 1024 {
		t.Errorf("a path counts %d bytes, and a client %d", paths, clients)
	}
}

// TestSearchesAreForgotten follows one line after the other in the same repository.
func TestSearchesAreForgotten(t *testing.T) {
	host := serving(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"tags":["1.0.0"]}`) })
	memory := budget.New(budget.Limits{All: 24 << 20, Namespace: 20 << 20})
	sources, clock := remoteSources(t, source.Options{Memory: memory})
	follow := func(lines int) int64 {
		for i := range lines {
			clock.Step(time.Second)
			expectNewest(t, sources, of(fmt.Sprintf(">=0.%d.0", lines+i), plainly(inRegistry("oci://"+hostOf(host)+"/charts/demo", ""))), clock.Now(), "1.0.0")
		}
		return memory.Usage().Cached
	}
	if few, many := follow(10), follow(100); many > few {
		t.Errorf("after 10 lines %d bytes are kept, and %d after 100", few, many)
	}
}
