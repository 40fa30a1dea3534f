// SPDX-License-Identifier: Apache-2.0

package render

import (
	"context"
	"slices"

	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/render/job"
	"github.com/cluster-chandler/chandler/internal/render/protocol"
)

// maxLookupRounds bounds how often the answers to a chart's lookups may lead it to further ones.
const maxLookupRounds = 4

// lookUp renders a chart until all its lookups are answered, as far as they may be. A chart that fails may do
// so because a lookup found nothing.
func (r *Renderer) lookUp(ctx context.Context, req *job.Chart) (*job.Result, error) {
	for range maxLookupRounds {
		resp, err := r.do(ctx, &protocol.Request{Chart: req})
		if resp == nil || req.Lookup == nil || len(resp.Asked) == 0 {
			return resultOf(resp, err)
		}
		answers, failed := req.Lookup(ctx, resp.Asked)
		if failed != nil {
			return nil, failed
		}
		if !slices.ContainsFunc(answers, func(a job.LookupAnswer) bool { return a.Object != nil }) {
			return resultOf(resp, err)
		}
		req.Answers = append(req.Answers, answers...)
		for _, a := range answers {
			req.Sensitive = append(slices.Clip(req.Sensitive), job.SecretsIn(a.Object)...)
		}
	}
	return nil, failure.New(job.ReasonTemplateFailed, "what lookup finds leads to other lookups more than %d times; take some calls out of the chart", maxLookupRounds)
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
