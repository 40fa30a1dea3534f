// SPDX-License-Identifier: Apache-2.0

package render

import (
	"context"
	"errors"

	sourcefailure "github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/artifact/opener"
)

// Open has a worker look into what comes from elsewhere. Errors of what is opened are of type
// [*failure.Error] of package artifact/failure.
func (r *Renderer) Open(ctx context.Context, job *opener.Job) (*opener.Opened, error) {
	resp, err := r.do(ctx, &request{Open: job})
	failed, ok := errors.AsType[*Error](err)
	switch {
	case err == nil:
		return resp.Opened, nil
	case !ok:
		return nil, err
	case sourcefailure.IsReason(failed.Reason):
		return nil, sourcefailure.New(failed.Reason, "%w", failed.Err)
	case failed.Reason == ReasonOutOfMemory, failed.Reason == ReasonRenderTimeout, failed.Reason == ReasonOutputTooLarge:
		return nil, sourcefailure.New(sourcefailure.ArtifactTooLarge, "it can't be opened: %w", failed.Err)
	}
	return nil, sourcefailure.New(sourcefailure.ArtifactInvalid, "it can't be opened: %w", failed.Err)
}

// open does the job in a worker.
func open(job *opener.Job, enter func(stage)) *response {
	enter(stageOpen)
	opened, err := opener.Run(job)
	if known, ok := errors.AsType[*sourcefailure.Error](err); ok {
		return failed(known.Reason, known.Err, nil)
	}
	if err != nil {
		return failed(ReasonChartInvalid, err, nil)
	}
	return &response{Opened: opened}
}
