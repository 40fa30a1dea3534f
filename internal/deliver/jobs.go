// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/cluster-chandler/chandler/internal/deliver/observe"
	"github.com/cluster-chandler/chandler/internal/deliver/readiness"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
)

// jobDone is the status of a Job that is known from the record to have run to its end.
var jobDone = observe.Status{Phase: observe.Current, Final: true, Message: "it ran to its end"}

// noteJobs records the Jobs of the manifest that ran to their end. Nothing else tells of it
// once they are gone by their ttlSecondsAfterFinished, and each is to run once for a revision.
func (r *application) noteJobs(ctx context.Context, objects []*unstructured.Unstructured) error {
	known := len(r.rec.State.JobsDone)
	for _, o := range objects {
		key := record.KeyOf(o)
		if !readiness.IsJob(o) {
			continue
		}
		a, ok := r.s.applied[key]
		if !ok || a.left {
			continue
		}
		_, noted := r.rec.State.JobDone(key)
		if status := r.statusOf(a); !noted && status.Final && status.Phase == observe.Current {
			e := record.EntryOf(o)
			e.UID = a.uid
			r.rec.State.JobsDone = append(r.rec.State.JobsDone, e)
		}
	}
	if len(r.rec.State.JobsDone) == known {
		return nil
	}
	return r.update(ctx)
}
