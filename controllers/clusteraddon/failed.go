// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"context"
	"errors"
	"fmt"
	"slices"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/reasons"
	"github.com/cluster-chandler/chandler/internal/retry"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// inputFailed returns the result of an add-on whose inputs can't be had. An add-on that is
// installed as it is wanted stays Ready: a source that is down changes nothing on a cluster.
func (q delivery) inputFailed(ctx context.Context, t *turn) addonResult {
	failed, ok := errors.AsType[*failure.Error](t.err)
	if !ok {
		return requestFailed(t.err, q.previousStatus(t.status))
	}
	one := because(t.status, failed.Reason, failed.Error())
	if failed.Wait {
		one.status.Phase = addonsv1.AddonPending
	}
	if one.retryAfter = failed.RetryAfter; failed.RetryAfter <= 0 && reasons.Of(failed.Reason).Is(reasons.Retried) {
		one.err = fmt.Errorf("add-on %s: %w", t.addon.Name, t.err)
	}
	return q.keepReady(ctx, t.addon, t.record, one)
}

// stillFailed keeps an add-on Failed for its source, with what is wrong, while the source is asked again for the same
// revision of the stack.
func (q delivery) stillFailed(a *addon, one addonResult) addonResult {
	was := q.previousStatus(a.status())
	if one.status.Reason != failure.ArtifactPending || was.Phase != addonsv1.AddonFailed || !reasons.Of(was.Reason).Is(reasons.SourceBad) {
		return one
	}
	revision := stack.AssignedRevision(q.ca.Spec.Stacks, a.stack)
	if slices.ContainsFunc(q.ca.Status.Stacks, func(s addonsv1.StackStatus) bool { return s.Name == a.stack && s.Revision == revision }) {
		one.status.Phase, one.status.Reason, one.status.Message = was.Phase, was.Reason, was.Message
	}
	return one
}

// keepReady keeps an add-on Ready whose source can't be read, if its record proves that its chart is the wanted
// one, and its values are the same.
func (q delivery) keepReady(ctx context.Context, a *addon, record deliver.Summary, one addonResult) addonResult {
	if !reasons.Of(one.status.Reason).Is(reasons.SourceFailed) || !installedAsWanted(a, record) {
		return one
	}
	in := &inputs{addon: a, chart: q.reference(a), artifact: record.Artifact}
	if err := inputReader(q).readValues(ctx, in, record); err != nil {
		return one
	}
	if same, err := rendering(q).settled(ctx, in, record); same && err == nil {
		one.status.Phase = addonsv1.AddonReady
		one.status.Message = shorten("Installed; its source can't be read now: " + one.status.Message)
	}
	return one
}

// contain recovers from a panic and makes it the add-on's failure. It is to be deferred.
func (q delivery) contain(ctx context.Context, status addonsv1.AddonStatus, one *addonResult) {
	if value := recover(); value != nil {
		*one = because(status, deliver.ReasonInternalError, deliver.Panicked(ctx, q.workload.name.String(), value))
		one.retryAfter = retry.Panic
	}
}
