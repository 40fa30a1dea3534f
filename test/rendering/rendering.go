// SPDX-License-Identifier: Apache-2.0

// Package rendering has charts, jobs and renderers for tests.
package rendering

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/render"
	"github.com/cluster-chandler/chandler/internal/render/chart"
	"github.com/cluster-chandler/chandler/internal/render/job"
	"github.com/cluster-chandler/chandler/test/must"
)

// Render renders without a worker, for what does not need one.
func Render(t testing.TB, req job.Chart) (*job.Result, error) {
	t.Helper()
	stage := job.StageStart
	result, _, err := chart.Render(&req, job.MostMade, func(entered job.Stage) { stage = entered })
	if _, ok := errors.AsType[*failure.Error](err); err != nil && !ok {
		err = &failure.Error{Reason: stage.Reason(), Err: err} // as a worker says it
	}
	return result, err
}

// MustRender renders without a worker, and without an error.
func MustRender(t testing.TB, req job.Chart) *job.Result {
	t.Helper()
	result, err := Render(t, req)
	must.Succeed(t, err)
	return result
}

// SecretWith returns a Secret as a cluster serves it.
func SecretWith(name, key, value string) map[string]any {
	return map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": name},
		"data": map[string]any{key: base64.StdEncoding.EncodeToString([]byte(value))},
	}
}

// MustChart renders a chart without an error.
func MustChart(t *testing.T, r *render.Renderer, req job.Chart) *job.Result {
	t.Helper()
	result, err := r.Chart(t.Context(), req)
	must.Succeed(t, err)
	return result
}

// NewRenderer returns a pool with limits that tests reach soon; change may adapt them.
func NewRenderer(t testing.TB, change ...func(*render.Options)) *render.Renderer {
	t.Helper()
	opts := render.Options{Workers: 2, Timeout: 30 * time.Second, MemoryBytes: 256 << 20}
	for _, c := range change {
		c(&opts)
	}
	r := render.New(opts)
	t.Cleanup(r.Close)
	return r
}

// Facts are of a cluster with a few APIs.
var Facts = job.Facts{
	KubeVersion: "v1.36.3",
	APIVersions: []string{"v1", "apps/v1", "apps/v1/Deployment", "policy/v1", "batch/v1", "networking.k8s.io/v1"},
}

// ChartJob renders a chart as the release demo.
func ChartJob(files []artifact.File) job.Chart {
	return job.Chart{Files: files, Release: job.Release{Name: "demo", Namespace: "kube-system", Revision: 1}, Facts: Facts}
}

// WantReason looks for an error with a reason, and with parts in its text.
func WantReason(t *testing.T, err error, reason string, parts ...string) {
	t.Helper()
	var failure *failure.Error
	if !errors.As(err, &failure) {
		t.Fatalf("got error %v, want an Error with reason %s", err, reason)
	}
	if failure.Reason != reason {
		t.Fatalf("got reason %s (%v), want %s", failure.Reason, err, reason)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q does not mention %q", err, part)
		}
	}
}
