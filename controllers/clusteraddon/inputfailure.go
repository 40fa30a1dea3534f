// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"errors"
	"fmt"
	"strings"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/reasons"
	"github.com/cluster-chandler/chandler/internal/render"
)

// inputError is a failure to get an add-on's inputs that its user can mend.
type inputError struct {
	reason string
	wait   bool // it may come by itself
	err    error
}

func (e *inputError) Error() string { return e.err.Error() }
func (e *inputError) Unwrap() error { return e.err }

// prefix puts the field in front of an inputError's message.
func prefix(err error, format string, args ...any) error {
	if in, ok := errors.AsType[*inputError](err); ok {
		return &inputError{reason: in.reason, wait: in.wait, err: fmt.Errorf(format+": %w", append(args, in.err)...)}
	}
	return err
}

// inputFailed writes the status of an add-on whose inputs can't be had. What is
// installed stays as it is, and stays Ready as long as nothing else is wanted: a
// source that is down changes nothing on a cluster.
func (p *pass) inputFailed(err error, a *addon, record deliver.Summary, status *addonsv1.AddonStatus) {
	reason, message, wait := describeInput(err, a)
	if reason == "" {
		p.clusterFailed(err, status)
		return
	}
	if in, ok := errors.AsType[*failure.Error](err); ok && in.RetryAfter > 0 {
		p.retryIn(in.RetryAfter)
	} else if reasons.Of(reason).Is(reasons.Retried) {
		p.errs = append(p.errs, fmt.Errorf("add-on %s: %w", a.Name, err)) // no event will tell
	}
	status.Phase, status.Reason, status.Message = addonsv1.AddonFailed, reason, shorten(message)
	if wait {
		status.Phase = addonsv1.AddonPending
	}
	keepReady(a, record, status)
}

// keepReady makes an add-on Ready whose source can't be read, if it is installed as
// its spec wants it.
func keepReady(a *addon, record deliver.Summary, status *addonsv1.AddonStatus) {
	if reasons.Of(status.Reason).Is(reasons.SourceFailed) && installedAsWanted(a, record) {
		status.Phase = addonsv1.AddonReady
		status.Message = shorten("Installed; its source can't be read now: " + status.Message)
	}
}

// installedAsWanted says whether an add-on is installed as its spec wants it.
func installedAsWanted(a *addon, record deliver.Summary) bool {
	return record.Status == deliver.StatusDeployed && record.Spec == specDigest(a)
}

// describeInput returns what is wrong with the inputs, and whether it may come
// right by itself. An error that isn't about them has no reason.
func describeInput(err error, a *addon) (reason, message string, wait bool) {
	if in, ok := errors.AsType[*inputError](err); ok {
		return in.reason, err.Error(), in.wait
	}
	if in, ok := errors.AsType[*failure.Error](err); ok {
		return in.Reason, ofAddon(a, err).Error(), in.Wait || in.Reason == failure.SourceUnavailable
	}
	if in, ok := errors.AsType[*render.Error](err); ok {
		return in.Reason, in.Err.Error(), false
	}
	return "", "", false
}

// ofAddon is an error of the add-on's source, or of making its objects, with the add-on
// in front of the field: one message may tell of several add-ons. Other errors are as
// they are.
func ofAddon(a *addon, err error) error {
	if failed, ok := errors.AsType[*failure.Error](err); ok {
		whole := *failed
		whole.Field = fmt.Sprintf("addons[%s].%s", a.Name, failed.Field)
		if strings.HasPrefix(failed.Field, addonsv1.FollowedSource) { // the bundle that it is in
			whole.Field = fmt.Sprintf("addons[%s]: %s", a.Name, failed.Field)
		}
		return &whole
	}
	if failed, ok := errors.AsType[*render.Error](err); ok {
		return &render.Error{Reason: failed.Reason, Err: fmt.Errorf("addons[%s].%s%w", a.Name, contentField(a, failed), failed.Err)}
	}
	return err
}

// contentField is the field whose content makes no objects, to be put in front of the
// error; "" if that begins with it.
func contentField(a *addon, failed *render.Error) string {
	switch numbered := strings.HasPrefix(failed.Err.Error(), "patches["); {
	case failed.Reason == render.ReasonSchemaViolation: // which names the value
		return ""
	case failed.Reason == render.ReasonPatchFailed && numbered:
		return ""
	case failed.Reason == render.ReasonPatchFailed:
		return "patches: "
	case a.Kustomization != nil:
		return "kustomization: "
	case a.Manifests != nil:
		return "manifests: "
	}
	return "chart: "
}
