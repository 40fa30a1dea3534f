// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"context"
	"fmt"
	"strings"
	"time"

	helmrelease "helm.sh/helm/v4/pkg/release/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/deliver/observe"
	"github.com/cluster-chandler/chandler/internal/deliver/readiness"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
)

// hookGrace is how long a hook may take to have a pod that runs. Nobody waits for one that can't start.
const hookGrace = time.Minute

// awaitRunningHooks waits for hooks of the newest revision that run, before there is another one: that would end
// them in the middle, of a migration, say. The work that a hook of a removal started doesn't continue in an add-on that
// is wanted again.
func (r hookRunner) awaitRunningHooks(ctx context.Context) error {
	if len(r.records) == 0 || r.want.Again || !r.records[0].Pending() || !r.isProven(r.records[0]) {
		return nil
	}
	rec, err := r.load(ctx, r.records[0])
	if err != nil || !r.believes(rec) {
		return err
	}
	r.rec = rec
	for _, h := range rec.Helm.Hooks {
		if h.Kind != "Job" && h.Kind != "Pod" {
			continue
		}
		if err := r.awaitRunningHook(ctx, h, rec.Status == StatusUninstalling); err != nil {
			return err
		}
	}
	r.rec = nil
	return nil
}

// awaitRunningHook waits for a hook of the revision. The object says whether it is of this revision, as the record
// says so only once it is done.
func (r hookRunner) awaitRunningHook(ctx context.Context, h *helmrelease.Hook, removal bool) error {
	o, err := r.hookObject(h)
	if err != nil {
		return nil //nolint:nilerr // it can't be there
	}
	live, err := r.applier.Get(ctx, o)
	if object.IsGone(err) {
		return nil
	}
	if err != nil {
		return r.failureOf(record.KeyOf(o), err)
	}
	run := live.GetAnnotations()[HookRunAnnotation]
	isOurs := strings.HasPrefix(run, fmt.Sprintf("%d.", r.rec.Revision)) && strings.HasSuffix(run, "."+string(r.rec.UID))
	now, err := r.scope.Observed(o, live, readiness.HookDone)
	if err != nil || !isOurs || live.GetDeletionTimestamp() != nil || now.Status.Phase != observe.InProgress {
		return err
	}
	left := r.deadline
	ready, _, _ := unstructured.NestedInt64(live.Object, "status", "ready") // of a Job
	phase, _, _ := unstructured.NestedString(live.Object, "status", "phase")
	if ready == 0 && phase != "Running" {
		left = min(left, hookGrace)
	}
	if left = live.GetCreationTimestamp().Add(left).Sub(r.now()); left > 0 {
		r.track(now)
		return r.wait(ReasonRunningHook, fmt.Sprintf(
			"Waiting for hook %s of revision %d, which another revision would end in the middle. To end it at once, annotate the ClusterAddon with %s",
			record.KeyOf(o), r.rec.Revision, addonsv1.ReconcileNowAnnotation), left)
	}
	if removal {
		return r.applier.Delete(ctx, live, live.GetUID(), metav1.DeletePropagationBackground)
	}
	return nil
}
