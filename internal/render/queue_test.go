// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/cluster-chandler/chandler/fleet/budget"
	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/artifact/opener"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/render"
	"github.com/cluster-chandler/chandler/internal/render/job"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/rendering"
)

// siege has a cluster of a namespace hold the only worker until the test ends.
type siege struct {
	*render.Renderer
	memory *budget.Budget
}

func newSiege(t *testing.T, files ...artifact.File) *siege {
	t.Helper()
	s := &siege{memory: budget.New(budget.Limits{All: 12 << 20, Namespace: 6 << 20})}
	s.Renderer = rendering.NewRenderer(t, func(o *render.Options) { o.Workers, o.Timeout, o.Memory = 1, time.Minute, s.memory })
	ctx, end := context.WithCancel(of(t, "mallory", "first"))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = s.Chart(ctx, rendering.ChartJob(append(rendering.ChartWith(endless), files...)))
	}()
	t.Cleanup(func() { end(); <-ended })
	for len(s.PIDs()) == 0 {
		time.Sleep(time.Millisecond)
	}
	return s
}

// leaves has a second cluster of the namespace wait with a chart, does something meanwhile, and returns with which error it leaves.
func (s *siege) leaves(t *testing.T, chart job.Chart, meanwhile ...func()) error {
	t.Helper()
	waits, leave := context.WithCancel(of(t, "mallory", "second"))
	left := make(chan error)
	go func() {
		_, err := s.Chart(waits, chart)
		left <- err
	}()
	for s.Waiting() == 0 {
		time.Sleep(time.Millisecond)
	}
	for _, do := range meanwhile {
		do()
	}
	leave()
	err := <-left
	if err == nil {
		t.Fatal("a second chart of the namespace was rendered meanwhile")
	}
	return err
}

func of(t *testing.T, namespace, cluster string) context.Context {
	return budget.WithTenant(t.Context(), budget.Tenant{Namespace: namespace, Cluster: cluster})
}

// harmless is a chart with files that needn't be read.
func harmless(files ...artifact.File) job.Chart {
	return rendering.ChartJob(append(rendering.ChartWith(rendering.ConfigMap), files...))
}

func noise(name string, bytes int) artifact.File {
	return artifact.File{Name: name, Data: make([]byte, bytes)}
}

// A namespace may have all workers. Another one finds one more.
func TestOneNamespaceLeavesAWorker(t *testing.T) {
	s := newSiege(t)
	_ = s.leaves(t, harmless(noise("a", 1)), func() {
		if _, err := s.Chart(of(t, "victim", "first"), harmless(noise("b", 1))); err != nil {
			t.Error(err)
		}
		must.Equal(t, 1, s.Waiting(), "requests that wait")
	})
}

// However many namespaces have workers, one that has several gives one to a namespace that has none: the last that it got. What
// that was for is rendered afterwards.
func TestNamespacesShareWorkers(t *testing.T) {
	r := rendering.NewRenderer(t, func(o *render.Options) { o.Workers, o.Timeout = 2, time.Minute })
	until := func(is func() bool) {
		for !is() {
			time.Sleep(time.Millisecond)
		}
	}
	var ended sync.WaitGroup
	hold := func(ctx context.Context, like string, workers int) {
		ended.Go(func() {
			_, err := r.Chart(ctx, rendering.ChartJob(append(rendering.ChartWith(endless), noise(like, 1))))
			if ctx.Err() == nil {
				t.Errorf("%s gave way for ever: %v", like, err)
			}
		})
		until(func() bool { return len(r.PIDs()) == workers })
	}
	ctx, end := context.WithCancel(t.Context())
	tenant := func(namespace string) context.Context {
		return budget.WithTenant(ctx, budget.Tenant{Namespace: namespace, Cluster: "first"})
	}
	hold(tenant("mallory"), "a", 1)
	first := r.PIDs()[0]
	hold(tenant("mallory"), "b", 2)
	hold(tenant("trudy"), "c", 3)
	for i := range 5 {
		if _, err := r.Chart(of(t, fmt.Sprint("victim-", i), "first"), harmless(noise("d", i+1))); err != nil {
			t.Error(err)
		}
	}
	until(func() bool { return r.Waiting() == 0 })
	if !slices.Contains(r.PIDs(), first) {
		t.Error("the worker that the namespace had first was ended")
	}
	end()
	ended.Wait()
}

// Plans leave a worker to all other work of their namespace, and wait for it.
func TestPlansComeLast(t *testing.T) {
	r := rendering.NewRenderer(t, func(o *render.Options) { o.Workers, o.Timeout = 1, time.Minute })
	last := func(cluster string) context.Context {
		return budget.WithTenant(t.Context(), budget.Tenant{Namespace: "a", Cluster: cluster, Last: true})
	}
	hold := func(ctx context.Context, like string) (end func()) {
		ctx, cancel := context.WithCancel(ctx)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_, _ = r.Chart(ctx, rendering.ChartJob(append(rendering.ChartWith(endless), noise(like, 1))))
		}()
		return func() { cancel(); <-ended }
	}
	until := func(is func() bool) {
		for !is() {
			time.Sleep(time.Millisecond)
		}
	}
	endPlan := hold(last("1"), "plan")
	until(func() bool { return len(r.PIDs()) == 1 })
	if _, err := r.Chart(of(t, "a", "1"), harmless(noise("upgrade", 1))); err != nil {
		t.Errorf("an upgrade of the same cluster: %v", err)
	}
	endUpgrade := hold(of(t, "a", "1"), "another upgrade")
	until(func() bool { return len(r.PIDs()) == 2 })
	first := make(chan string, 2)
	for i, ctx := range []context.Context{last("2"), of(t, "a", "2")} {
		name := []string{"a plan", "an upgrade"}[i]
		go func() {
			if _, err := r.Chart(ctx, harmless(noise(name, 1))); err != nil {
				t.Error(err)
			}
			first <- name
		}()
		until(func() bool { return r.Waiting() > i })
	}
	endUpgrade()
	must.Equal(t, "an upgrade", <-first)
	must.Equal(t, 1, r.Waiting(), "plans have no worker more")
	endPlan()
	must.Equal(t, "a plan", <-first)
}

// A reconcile that has no patience left says so, and needs no worker for what is known.
func TestReconcilesWaitForAWhile(t *testing.T) {
	s := newSiege(t)
	_, err := s.Chart(render.WithPatience(of(t, "mallory", "second"), 10*time.Millisecond), harmless())
	rendering.WantReason(t, err, job.ReasonWaitingForRenderer, "busy")
	if failed := failure.Of(err); !failed.Wait || failed.RetryAfter <= 0 {
		t.Errorf("it is %+v", failed)
	}
	ctx := render.WithPatience(of(t, "victim", "first"), time.Nanosecond)
	if _, err := s.Chart(ctx, harmless()); err != nil { // a worker is free
		t.Error(err)
	}
	_, err = s.Chart(ctx, harmless(noise("a", 1)))
	rendering.WantReason(t, err, job.ReasonWaitingForRenderer, "took their time")
	if _, err := s.Chart(ctx, harmless()); err != nil {
		t.Errorf("what was rendered before: %v", err)
	}
	if _, err := s.Open(ctx, &opener.Job{YAML: &opener.YAML{Data: []byte("a: 1")}}); err != nil { // for all who ask the source
		t.Errorf("what a source has: %v", err)
	}
}

// Files that wait count as memory of their namespace: those of the same chart once. What has no room doesn't wait.
func TestFilesThatWaitCount(t *testing.T) {
	const much = 4 << 20
	s := newSiege(t, noise("a", much))
	if err := s.leaves(t, rendering.ChartJob(append(rendering.ChartWith(endless), noise("a", much)))); failure.Of(err).Reason == job.ReasonWaitingForRenderer {
		t.Errorf("a second cluster with the same files: %v", err)
	}
	_, err := s.Chart(render.WithPatience(of(t, "mallory", "third"), time.Second), harmless(noise("b", much)))
	rendering.WantReason(t, err, job.ReasonWaitingForRenderer, "memory")
	if _, err := s.Chart(of(t, "victim", "first"), harmless(noise("b", much))); err != nil {
		t.Errorf("another namespace: %v", err)
	}
	if held := s.memory.Usage().Claimed; held < much || held > much+much/4 {
		t.Errorf("%d bytes are held for the one chart that is rendered", held)
	}
}

// What is opened is sent as it is in memory.
func TestContentsAreNotCopied(t *testing.T) {
	r := rendering.NewRenderer(t)
	mustRender(t, r)
	large := append([]byte(`{"entries": {}}`), bytes.Repeat([]byte(" "), 16<<20)...)
	for name, job := range map[string]*opener.Job{
		"an index":  {Index: &opener.Index{Data: large}},
		"a YAML":    {YAML: &opener.YAML{Data: large}},
		"a package": {Package: &opener.Package{Files: []artifact.File{{Name: "Chart.yaml", Data: []byte("a: b")}, {Name: ".helmignore", Data: []byte("x")}, {Name: "x", Data: large}}}},
		"an archive": {Unpack: &opener.Unpack{
			Content: artifact.Content{Archive: large, Kind: artifact.KindChart}, Limits: artifact.Limits{}.WithDefaults(),
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := r.Open(t.Context(), job)
			runtime.ReadMemStats(&after)
			if err != nil && !failure.IsReason(failure.Of(err).Reason) {
				t.Error(err)
			}
			if made := after.TotalAlloc - before.TotalAlloc; made > 2<<20 {
				t.Errorf("%d MiB were made for %d MiB", made>>20, len(large)>>20)
			}
		})
	}
	must.Equal(t, 16<<20+15, len(large), "the callers' own bytes")
}

// A worker reads an index for a few seconds. One that it was killed for isn't asked for again at once.
func TestIndexesHaveLittleTime(t *testing.T) {
	for mebibytes, want := range map[int]time.Duration{0: 3 * time.Second, 16: 7 * time.Second, 31: 10750 * time.Millisecond, 100: 20 * time.Second} {
		must.Equal(t, want, render.IndexTimeout(mebibytes<<20), mebibytes, "MiB")
	}
	r := rendering.NewRenderer(t, func(o *render.Options) { o.Timeout = 100 * time.Millisecond })
	slow := []byte("entries:\n  a: []\njunk: '" + string(bytes.Repeat(append(bytes.Repeat([]byte("x "), 500), "\n "...), 4<<10)) + "'\n")
	_, err := r.Open(t.Context(), &opener.Job{Index: &opener.Index{Data: slow}})
	rendering.WantReason(t, err, failure.ArtifactTooLarge)
	if failed := failure.Of(err); failed.RetryAfter < 5*time.Minute {
		t.Errorf("it is asked for again after %s", failed.RetryAfter)
	}
}

// The largest index that is fetched is read in the memory that a worker has by default.
func TestLargestIndexIsRead(t *testing.T) {
	long.InCI(t)
	var text bytes.Buffer
	text.WriteString("apiVersion: v1\nentries:\n")
	for i := 0; text.Len() < 31<<20; i++ {
		fmt.Fprintf(&text, "  chart%d:\n", i)
		for version := range 20 {
			fmt.Fprintf(&text, "  - apiVersion: v2\n    dependencies:\n    - name: common\n      version: 2.x.x\n    digest: %064d\n    urls:\n    - a-1.2.%[1]d.tgz\n    version: 1.2.%[1]d\n", version)
		}
	}
	opened, err := rendering.NewRenderer(t).Open(t.Context(), &opener.Job{Index: &opener.Index{Data: text.Bytes()}})
	must.Succeed(t, err)
	if len(opened.Charts) < 5000 || len(opened.Charts["chart0"]) != 20 {
		t.Errorf("got %d charts, %d versions of the first", len(opened.Charts), len(opened.Charts["chart0"]))
	}
}
