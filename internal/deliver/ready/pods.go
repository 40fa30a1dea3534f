// SPDX-License-Identifier: Apache-2.0

package ready

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/cluster-chandler/chandler/internal/deliver/observe"
	"github.com/cluster-chandler/chandler/internal/deliver/readiness"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/internal/health"
)

const (
	// firstPodLook is how long workloads are waited for before their pods are looked at. Each next look comes after
	// as long again as they have been waited for.
	firstPodLook = 3 * time.Second
	// maxPodLooks is how many workloads that aren't ready are looked at.
	maxPodLooks = 3
)

// lookAtPods looks for what pods of workloads wait for that aren't ready, if it is time to. It returns when the next
// look is due. A cluster that doesn't let pods be read is no failure of the add-on.
func (w *Wait) lookAtPods(ctx context.Context, waited time.Duration) (next time.Duration) {
	look := &w.Progress.pods
	if look.next.IsZero() && waited < firstPodLook {
		return firstPodLook - waited
	}
	if left := look.next.Sub(w.Clock.Now()); left > 0 {
		return left
	}
	look.next, look.found = w.Clock.Now().Add(max(waited, firstPodLook)), nil
	looked := 0
	for _, o := range *w.Wanted {
		key := record.KeyOf(o)
		a, isApplied := w.Objects.all[key]
		if !isApplied || !readiness.IsWorkload(o.GroupVersionKind().GroupKind()) || w.Objects.StatusOf(a).Phase == observe.Current {
			continue
		}
		if looked++; looked > maxPodLooks {
			break
		}
		found, err := health.LookAtPods(ctx, w.Client, o)
		if err != nil {
			log.FromContext(ctx).V(1).Info("Could not look at pods", "object", key.String(), "error", err.Error())
			break
		}
		if found != nil {
			look.found, look.about = found, key
			break
		}
	}
	return look.next.Sub(w.Clock.Now())
}
