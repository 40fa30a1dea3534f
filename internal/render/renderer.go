// SPDX-License-Identifier: Apache-2.0

package render

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"helm.sh/helm/v4/pkg/chart/common"

	"github.com/cluster-chandler/chandler/fleet/budget"
	"github.com/cluster-chandler/chandler/internal/artifact/opener"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/render/job"
	"github.com/cluster-chandler/chandler/internal/render/protocol"
	"github.com/cluster-chandler/chandler/internal/retry"
)

// Renderer has jobs done by worker processes. It is safe for concurrent use.
type Renderer struct {
	pool    *pool
	queue   *queue
	pauses  pauses
	answers *sharedAnswers
	lookups *knownLookups
}

// New returns a Renderer. Workers are started when they are needed first.
func New(opts Options) *Renderer {
	opts = opts.withDefaults()
	pool, workers := newPool(opts), int64(opts.Workers)
	return &Renderer{
		pool: pool,
		queue: &queue{
			slots:   budget.New(budget.Limits{All: workers + 2, Namespace: workers, Last: max(1, workers-1), Reserve: 1, Entry: 1}),
			turns:   newTurns(),
			files:   files{memory: opts.Memory, known: map[string]*usedFiles{}},
			closing: pool.closing,
		},
		answers: newSharedAnswers(opts.Memory),
		lookups: newKnownLookups(opts.Memory),
		pauses:  newPauses(),
	}
}

// Close kills all workers and waits for their end. Renderings under way fail with ErrClosed.
func (r *Renderer) Close() { r.pool.close() }

// Chart renders a chart. A failure that a user can act on is a [*failure.Error]; any other error
// is ctx's, or means that no worker could be started.
func (r *Renderer) Chart(ctx context.Context, req job.Chart) (*job.Result, error) {
	if _, err := common.ParseKubeVersion(req.Facts.KubeVersion); err != nil {
		return nil, fmt.Errorf("facts: kubeVersion %q: %w", req.Facts.KubeVersion, err)
	}
	result, err := r.lookUp(ctx, &req)
	if err != nil || !result.Made || req.Live == nil {
		return result, err
	}
	if req.LiveObjects, err = req.Live(ctx); err != nil || len(req.LiveObjects) == 0 {
		return result, err
	}
	for _, live := range req.LiveObjects {
		req.Sensitive = append(slices.Clip(req.Sensitive), job.SecretsIn(live.Object)...)
	}
	return r.lookUp(ctx, &req)
}

// Files returns the objects that files make. Helm's hooks among them are objects like all others. Errors are as those
// of [Renderer.Chart].
func (r *Renderer) Files(ctx context.Context, req job.Files) (*job.Result, error) {
	resp, err := r.do(ctx, &protocol.Request{Objects: &req})
	return resultOf(resp, err)
}

// Values reads values as Helm does: YAML 1.1 by way of JSON, so that all numbers are
// float64; several documents are merged. Unlike Helm, it refuses a key that appears twice,
// and input that is large, deep, or grows large by its aliases. A worker reads them: with
// aliases, a few KiB become GiB. Errors are as those of [Renderer.Chart].
func (r *Renderer) Values(ctx context.Context, req job.Values) (map[string]any, error) {
	if len(req.Text) > job.MaxValuesBytes {
		return nil, failure.New(job.ReasonValuesInvalid, "values: %d bytes, at most %d", len(req.Text), job.MaxValuesBytes)
	}
	resp, err := r.do(ctx, &protocol.Request{Values: &req})
	switch {
	case err != nil:
		return nil, err
	case resp.Values == nil:
		return nil, protocol.ErrUnexpected
	}
	return resp.Values, nil
}

// Template renders a values template in the syntax of the Cluster API Add-on Provider for
// Helm: text/template with sprig's functions, without env, expandenv and getHostByName. A template that
// calls a function that returns something else each time is refused.
// Errors are as those of [Renderer.Chart].
func (r *Renderer) Template(ctx context.Context, req job.Template) (string, error) {
	resp, err := r.do(ctx, &protocol.Request{Template: &req})
	if err != nil {
		return "", err
	}
	if resp.Template == nil {
		return "", protocol.ErrUnexpected
	}
	return *resp.Template, nil
}

// Names returns the names of objects that templates make, in the order of these, by one request to a worker.
// Whether an object can have such a name is left to the caller. Errors are as those of [Renderer.Template].
func (r *Renderer) Names(ctx context.Context, req job.Names) ([]string, error) {
	resp, err := r.do(ctx, &protocol.Request{Names: &req})
	if err != nil {
		return nil, err
	}
	if len(resp.Names) != len(req.Templates) {
		return nil, protocol.ErrUnexpected
	}
	return resp.Names, nil
}

// Open has a worker read hostile content, for all who asked for it: however patient the first of them is, and whenever its turn
// is. An error of the content is a [*failure.Error] with a reason of a source.
func (r *Renderer) Open(ctx context.Context, archive *opener.Job) (*opener.Opened, error) {
	of := budget.TenantOf(ctx)
	of.Last = false
	resp, err := r.do(context.WithValue(budget.WithTenant(ctx, of), patienceKey{}, nil), &protocol.Request{Open: archive})
	failed, ok := errors.AsType[*failure.Error](err)
	switch {
	case err == nil:
		return resp.Opened, nil
	case !ok:
		return nil, err
	case failure.IsReason(failed.Reason):
		return nil, err
	case failed.Reason == job.ReasonOutOfMemory, failed.Reason == job.ReasonRenderTimeout, failed.Reason == job.ReasonOutputTooLarge:
		large := failure.New(failure.ArtifactTooLarge, "it can't be opened: %w", failed.Err)
		large.RetryAfter = retry.Refused.Longest // each time it takes all of a worker
		return nil, large
	}
	return nil, failure.New(failure.ArtifactInvalid, "it can't be opened: %w", failed.Err)
}

// do has one request answered, by a worker or by the answer to an equal one. With a [*failure.Error] there
// may be a response, too.
func (r *Renderer) do(ctx context.Context, req *protocol.Request) (*protocol.Response, error) {
	for {
		resp, err := r.try(ctx, req)
		if !errors.Is(err, errGaveWay) {
			return resp, err
		}
	}
}

// try is [Renderer.do], but may return errGaveWay.
func (r *Renderer) try(ctx context.Context, req *protocol.Request) (*protocol.Response, error) {
	req.Limits = job.MostMade
	task, err := newTask(req, r.pool.opts.Timeout)
	defer func() { req.Attach(task.contents) }() // it may be asked again, with the answers to lookups
	if err != nil {
		return nil, err
	}
	if task.size > inputBytes {
		return nil, failure.New(job.ReasonChartInvalid, "its files, values and facts take %d bytes, at most %d; make it smaller", task.size, inputBytes)
	}
	if r.pool.closing.Err() != nil {
		return nil, ErrClosed
	}
	if resp := r.answers.find(task); resp != nil {
		return resp, nil
	}
	if failed := r.pauses.failure(task.whole); failed != nil {
		return nil, failed
	}
	use, leave, err := r.queue.join(ctx, task)
	if err != nil {
		return nil, err
	}
	defer leave()
	if resp := r.answers.find(task); resp != nil { // for another one, while this waited
		return resp, nil
	}
	resp, err := r.pool.serve(use, task)
	if errors.Is(err, errGaveWay) {
		return nil, err
	}
	if req.MakesObjects() {
		result := resultRendered
		if err != nil || resp.Failure != nil {
			result = resultFailed
		}
		renderingsTotal.WithLabelValues(result).Inc()
	}
	if err == nil || ctx.Err() == nil {
		r.pauses.record(budget.TenantOf(ctx), task.whole, err)
	}
	if err != nil {
		return nil, err
	}
	if f := resp.Failure; f != nil {
		return resp, &failure.Error{Reason: f.Reason, Err: errors.New(f.Message)}
	}
	r.answers.keep(budget.TenantOf(ctx), task, resp)
	return resp, nil
}
