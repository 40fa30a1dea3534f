// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/message"
)

// established waits for CRDs to be served.
func (r *application) established(ctx context.Context, crds []*unstructured.Unstructured, rejections object.Failures) error {
	failed, waiting := readinessWait{r.call}.unready(crds)
	if len(failed)+len(waiting) == 0 {
		return nil
	}
	readinessWait{r.call}.watchUnready(crds)
	if len(failed) > 0 {
		return r.failed(ctx, ReasonObjectFailed, message.FirstFew(failed), 0)
	}
	deadline := r.rec.Helm.Info.LastDeployed.Add(r.want.ProgressDeadline)
	if !r.now().Before(deadline) {
		return r.failed(ctx, ReasonReadinessTimeout, message.FirstFew(waiting), 0)
	}
	if f := rejections.Worst(); f != nil && f.Kind == object.Rejected {
		waiting = append(waiting, f.Message)
	}
	return r.wait(object.ReasonWaitingForCRDs, "Waiting for "+message.FirstFew(waiting), deadline.Sub(r.now()))
}

// rescope prepares the objects again if the cluster didn't know all of their kinds before.
// A CRD of a hook, or of another add-on, may have said since that a kind isn't
// namespaced.
func (r *application) rescope() error {
	if !r.s.unscoped {
		return nil
	}
	r.scope.Unknown = false
	objects, err := r.scope.Prepare(r.s.objects)
	if err != nil {
		return err
	}
	r.s.objects, r.s.unscoped = objects, r.scope.Unknown
	return nil
}
