// SPDX-License-Identifier: Apache-2.0

package inputs

import (
	"errors"
	"fmt"
	"strings"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/wanted"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/render/job"
)

// OfAddon returns an error of the add-on's source or objects with the add-on in front of the field,
// as one message may be about several add-ons. Other errors stay as they are.
func OfAddon(a *wanted.Addon, err error) error {
	failed, ok := errors.AsType[*failure.Error](err)
	if !ok {
		return err
	}
	whole := *failed
	switch {
	case failed.Field == "":
		whole.Err = fmt.Errorf("addons[%s].%s%w", a.Name, contentField(a, failed), failed.Err)
	case strings.HasPrefix(failed.Field, addonsv1.FollowedSource): // the bundle that it is in
		whole.Field = fmt.Sprintf("addons[%s]: %s", a.Name, failed.Field)
	default:
		whole.Field = fmt.Sprintf("addons[%s].%s", a.Name, failed.Field)
	}
	return &whole
}

// contentField returns the field in front of an error of content, "" if the error begins with it.
func contentField(a *wanted.Addon, failed *failure.Error) string {
	switch {
	case failed.Reason == job.ReasonSchemaViolation: // which names the value
		return ""
	case failed.Reason == job.ReasonPatchFailed && strings.HasPrefix(failed.Err.Error(), "patches["):
		return ""
	case failed.Reason == job.ReasonPatchFailed:
		return "patches: "
	case a.Kustomization != nil:
		return "kustomization: "
	case a.Manifests != nil:
		return "manifests: "
	}
	return "chart: "
}
