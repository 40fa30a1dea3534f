// SPDX-License-Identifier: Apache-2.0

package render

import (
	"context"
	"slices"

	"github.com/cluster-chandler/chandler/fleet/budget"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/render/job"
	"github.com/cluster-chandler/chandler/internal/render/protocol"
)

// maxLookupRounds bounds how often the answers to a chart's lookups may lead it to further ones.
const maxLookupRounds = 4

const (
	// knownLookupsBytes bounds the lookups that are remembered. One takes about a hundred bytes.
	knownLookupsBytes = 1 << 20
	// maxKnownLookups of one chart and release are remembered.
	maxKnownLookups = 50
)

// knownLookups are the lookups of charts on the clusters before, so that a rendering has their answers when it begins:
// otherwise it ends with these questions, and another one follows.
//
// Key: a namespace, the digest of a chart, and a release.
// Bound: knownLookupsBytes, and maxKnownLookups for each.
// Lost with it: a chart with lookups is rendered once more.
type knownLookups struct {
	lookups *budget.Cache[knownLookupsKey, []job.Lookup]
}

type knownLookupsKey struct{ tenant, chart, namespace, name string }

func newKnownLookups(memory *budget.Budget) *knownLookups {
	return &knownLookups{lookups: budget.NewCache[knownLookupsKey](memory, knownLookupsBytes, func(lookups []job.Lookup) (bytes int64) {
		for _, l := range lookups {
			bytes += int64(len(l.APIVersion) + len(l.Kind) + len(l.Namespace) + len(l.Name))
		}
		return bytes
	})}
}

func keyOf(of budget.Tenant, req *job.Chart) knownLookupsKey {
	return knownLookupsKey{of.Namespace, req.Digest, req.Release.Namespace, req.Release.Name}
}

// answerKnown answers the lookups of the chart's renderings before. One that can't be answered is left to the rendering, which
// may not ask for it.
func (k *knownLookups) answerKnown(ctx context.Context, req *job.Chart) {
	if req.Lookup == nil || req.Digest == "" || len(req.Answers) > 0 {
		return
	}
	if known, _ := k.lookups.Get(keyOf(budget.TenantOf(ctx), req)); len(known) > 0 {
		if answers, err := req.Lookup(ctx, known); err == nil {
			addAnswers(req, answers)
		}
	}
}

// add remembers lookups that there was no answer for.
func (k *knownLookups) add(ctx context.Context, req *job.Chart, asked []job.Lookup) {
	if req.Digest == "" {
		return
	}
	of := budget.TenantOf(ctx)
	k.lookups.Change(of, keyOf(of, req), func(known *[]job.Lookup) {
		more := slices.DeleteFunc(slices.Clone(asked), func(l job.Lookup) bool { return slices.Contains(*known, l) })
		*known = slices.Concat(*known, more[:min(len(more), maxKnownLookups-len(*known))])
	})
}

// lookUp renders a chart until all its lookups are answered, as far as they may be. A chart that fails may do
// so because a lookup found nothing.
func (r *Renderer) lookUp(ctx context.Context, req *job.Chart) (*job.Result, error) {
	r.lookups.answerKnown(ctx, req)
	for range maxLookupRounds {
		resp, err := r.do(ctx, &protocol.Request{Chart: req})
		if resp == nil || req.Lookup == nil || len(resp.Asked) == 0 {
			return resultOf(resp, err)
		}
		r.lookups.add(ctx, req, resp.Asked)
		answers, failed := req.Lookup(ctx, resp.Asked)
		if failed != nil {
			return nil, failed
		}
		if !slices.ContainsFunc(answers, func(a job.LookupAnswer) bool { return a.Object != nil }) {
			return resultOf(resp, err)
		}
		addAnswers(req, answers)
	}
	return nil, failure.New(job.ReasonTemplateFailed, "what lookup finds leads to other lookups more than %d times; take some calls out of the chart", maxLookupRounds)
}

func addAnswers(req *job.Chart, answers []job.LookupAnswer) {
	req.Answers = append(req.Answers, answers...)
	for _, a := range answers {
		req.Sensitive = append(slices.Clip(req.Sensitive), job.SecretsIn(a.Object)...)
	}
}

func resultOf(resp *protocol.Response, err error) (*job.Result, error) {
	switch {
	case err != nil:
		return nil, err
	case resp.Result == nil:
		return nil, protocol.ErrUnexpected
	}
	return resp.Result, nil
}
