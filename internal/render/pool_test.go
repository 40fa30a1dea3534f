// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cluster-chandler/chandler/fleet/budget"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/render"
	"github.com/cluster-chandler/chandler/internal/render/job"
	"github.com/cluster-chandler/chandler/internal/render/protocol"
	"github.com/cluster-chandler/chandler/internal/render/sandbox"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/rendering"
)

var renderings atomic.Int64

// mustRender has a worker render something that nobody asked for before.
func mustRender(t *testing.T, r *render.Renderer) {
	t.Helper()
	req := rendering.ChartJob(rendering.ChartWith(rendering.ConfigMap))
	req.Release.Revision = int(renderings.Add(1))
	if _, err := r.Chart(t.Context(), req); err != nil {
		t.Fatal(err)
	}
}

func TestWorkersAreReused(t *testing.T) {
	r := rendering.NewRenderer(t, func(o *render.Options) { o.Workers, o.RequestsPerWorker = 1, 3 })
	must.Len(t, 0, r.PIDs(), "a worker was started before it was needed")
	var seen []int
	for range 3 {
		mustRender(t, r)
		seen = append(seen, r.PIDs()...)
	}
	if len(seen) != 2 || seen[0] != seen[1] {
		t.Errorf("workers after each of 3 requests: %v, want the same twice, then none", seen)
	}
	mustRender(t, r)
	if pids := r.PIDs(); len(pids) != 1 || pids[0] == seen[0] {
		t.Errorf("worker %v, want one other than %d", pids, seen[0])
	}
}

func TestIdleWorkersEnd(t *testing.T) {
	r := rendering.NewRenderer(t, func(o *render.Options) { o.IdleTimeout = 50 * time.Millisecond })
	mustRender(t, r)
	pids := r.PIDs()
	for range 100 {
		if len(r.PIDs()) == 0 {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	if len(pids) != 1 || len(r.PIDs()) != 0 || processRuns(pids[0]) {
		t.Errorf("worker %v still runs", pids)
	}
	mustRender(t, r)
}

func TestDeadIdleWorkerIsReplaced(t *testing.T) {
	r := rendering.NewRenderer(t, func(o *render.Options) { o.Workers = 1 })
	for range 3 {
		mustRender(t, r)
		process, err := os.FindProcess(r.PIDs()[0])
		must.Succeed(t, err)
		must.Succeed(t, process.Kill())
	}
	mustRender(t, r)
	must.Len(t, 1, r.PIDs(), "workers")
}

func TestParallelRequests(t *testing.T) {
	r := rendering.NewRenderer(t, func(o *render.Options) { o.Workers, o.RequestsPerWorker = 3, 10 })
	var wg sync.WaitGroup
	for i := range 60 {
		wg.Go(func() {
			req := rendering.ChartJob(rendering.ChartWith(rendering.ConfigMap + `data: {a: "{{ .Values.i }}", b: "{{ .Capabilities.APIVersions.Has .Values.i }}"}`))
			req.Values = map[string]any{"i": fmt.Sprint(i)}
			result, err := r.Chart(budget.WithTenant(t.Context(), budget.Tenant{Namespace: "team"}), req)
			if err != nil {
				t.Error(err)
				return
			}
			data := result.Objects[0].Object["data"].(map[string]any)
			if data["a"] != fmt.Sprint(i) || len(result.FactsUsed.Has) != 1 {
				t.Errorf("request %d got %v and %v", i, data, result.FactsUsed)
			}
			if req.Values["i"] != fmt.Sprint(i) || len(req.Values) != 1 {
				t.Errorf("request %d: values were modified", i)
			}
		})
	}
	wg.Wait()
	if n := len(r.PIDs()); n > 3 {
		t.Errorf("%d workers, want at most 3", n)
	}
}

func TestCancelledRequest(t *testing.T) {
	r := rendering.NewRenderer(t, func(o *render.Options) { o.Workers = 1 })
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(300*time.Millisecond, cancel)
	started := time.Now()
	_, err := r.Chart(ctx, rendering.ChartJob(rendering.ChartWith(endless)))
	var failure *failure.Error
	if !errors.Is(err, context.Canceled) || errors.As(err, &failure) {
		t.Errorf("got %v, want the context's error", err)
	}
	if took := time.Since(started); took > 10*time.Second {
		t.Errorf("took %s", took)
	}
	must.Len(t, 0, r.PIDs(), "worker still runs")
	if _, err := r.Chart(ctx, rendering.ChartJob(rendering.ChartWith(rendering.ConfigMap))); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	mustRender(t, r)
}

// TestTimeOffTheProcessorIsNotCharged stops a worker in the middle of its work, as a busy machine does, until its time is over
// by the clock.
func TestTimeOffTheProcessorIsNotCharged(t *testing.T) {
	if _, known := sandbox.ProcessorTime(os.Getpid()); !known {
		t.Skip("processor time isn't known here")
	}
	const timeout = 2 * time.Second
	r := rendering.NewRenderer(t, func(o *render.Options) { o.Workers, o.Timeout = 1, timeout })
	mustRender(t, r)
	worker, err := os.FindProcess(r.PIDs()[0])
	must.Succeed(t, err)
	must.Succeed(t, worker.Signal(syscall.SIGSTOP))
	time.AfterFunc(timeout+timeout/2, func() { _ = worker.Signal(syscall.SIGCONT) })
	mustRender(t, r)
}

func TestWaitForAWorkerIsNotChargedToTheRequest(t *testing.T) {
	long.InCI(t)
	r := rendering.NewRenderer(t, func(o *render.Options) { o.Workers, o.Timeout = 1, 2*time.Second })
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			_, err := r.Chart(t.Context(), rendering.ChartJob(rendering.ChartWith(endless)))
			rendering.WantReason(t, err, job.ReasonRenderTimeout, "2s", "executing the templates")
		})
	}
	time.Sleep(100 * time.Millisecond)
	mustRender(t, r)
	wg.Wait()
}

func TestClose(t *testing.T) {
	r := render.New(render.Options{Workers: 2})
	mustRender(t, r)
	failed := make(chan error, 1)
	go func() {
		_, err := r.Chart(t.Context(), rendering.ChartJob(rendering.ChartWith(endless)))
		failed <- err
	}()
	time.Sleep(300 * time.Millisecond)
	pids := r.PIDs()
	r.Close()
	r.Close()
	if err := <-failed; !errors.Is(err, render.ErrClosed) {
		t.Errorf("request under way: %v", err)
	}
	for _, pid := range pids {
		if processRuns(pid) {
			t.Errorf("worker %d still runs", pid)
		}
	}
	if _, err := r.Chart(t.Context(), rendering.ChartJob(rendering.ChartWith(rendering.ConfigMap))); !errors.Is(err, render.ErrClosed) {
		t.Errorf("request after Close: %v", err)
	}
	render.New(render.Options{}).Close()
}

func TestRequestTooLarge(t *testing.T) {
	r := rendering.NewRenderer(t)
	_, err := r.Chart(t.Context(), rendering.ChartJob(rendering.ChartOf(map[string]string{"templates/a.yaml": strings.Repeat("#", 64<<20)})))
	rendering.WantReason(t, err, job.ReasonChartInvalid, "at most 67108864")
}

func TestFactsMustBeRight(t *testing.T) {
	r := rendering.NewRenderer(t)
	req := rendering.ChartJob(rendering.ChartWith(rendering.ConfigMap))
	req.Facts.KubeVersion = ""
	var failure *failure.Error
	if _, err := r.Chart(t.Context(), req); err == nil || errors.As(err, &failure) {
		t.Errorf("got %v, want an error of the caller", err)
	}
}

// TestSandbox looks at a worker from outside: no environment, no further files, little memory.
func TestSandbox(t *testing.T) {
	t.Setenv("CHANDLER_SENTINEL", "must not be inherited")
	r := rendering.NewRenderer(t)
	mustRender(t, r)
	pid := r.PIDs()[0]
	environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		t.Skipf("no /proc: %v", err)
	}
	if got := strings.TrimRight(string(environ), "\x00"); strings.Contains(got, "\x00") || !strings.HasPrefix(got, protocol.WorkerEnv+"=") {
		t.Errorf("environment %q", got)
	}
	limits, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", pid))
	if err != nil {
		t.Skipf("no limits: %v", err)
	}
	for line := range strings.Lines(string(limits)) {
		if strings.HasPrefix(line, "Max open files") && strings.Fields(line)[3] != "0" {
			t.Errorf("limits: %s", line)
		}
	}
	if cwd, _ := os.Readlink(fmt.Sprintf("/proc/%d/cwd", pid)); cwd != "/" {
		t.Errorf("works in %s", cwd)
	}
}
