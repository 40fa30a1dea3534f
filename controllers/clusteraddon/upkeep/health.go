// SPDX-License-Identifier: Apache-2.0

package upkeep

import (
	"context"
	"slices"
	"time"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/decide"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/inputs"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/result"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/wanted"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/workload"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/deliver/contained"
	"github.com/cluster-chandler/chandler/internal/deliver/readiness"
	"github.com/cluster-chandler/chandler/internal/fleetwatch"
	"github.com/cluster-chandler/chandler/internal/health"
	"github.com/cluster-chandler/chandler/internal/message"
	"github.com/cluster-chandler/chandler/internal/retry"
)

const (
	// maxLooks is how many objects of a cluster are looked at, at once.
	maxLooks = 5
	// pauseForRequest is how long the next look waits for each request that an object took.
	pauseForRequest = 10 * time.Second
)

// Health evaluates the workloads of an installed add-on.
type Health struct {
	Watched  *fleetwatch.Objects
	Workload workload.Cluster
	Addon    *wanted.Addon
	Memory   *HealthMemory
	Was      addonsv1.AddonStatus
	Now      time.Time
}

// Look looks at the workloads that have changed of an add-on that is Ready. It returns that the add-on is Degraded once one of
// them hasn't been ready for long enough, nil before. It changes nothing on the cluster.
func (q Health) Look(ctx context.Context, record deliver.Summary, in *inputs.Inputs, one *result.Addon) *decide.Said {
	release, memory, was := q.Addon.Release(), q.Memory, q.Was
	if policy, _ := q.Addon.DriftRules(); policy == addonsv1.DriftPolicyIgnore {
		return nil // nothing is watched
	}
	if one.Unreachable || one.Status.Revision != int32(record.Revision) && one.Found == nil {
		return nil
	}
	memory.turnTo(int(one.Status.Revision))
	if one.Found != nil { // each object was found ready just now
		q.Watched.Evaluated(q.Workload.Conn, release, one.Found)
		memory.noteReady(one.Found)
		return nil
	}
	changed, listed := q.Watched.Changed(q.Workload.Conn, release)
	err := q.lookAtChanged(ctx, changed)
	if !memory.looked && was.Phase == addonsv1.AddonDegraded && was.Revision == one.Status.Revision {
		if !listed || err != nil { // nothing says that it is otherwise now
			is := result.SaidIn(was)
			return &is
		}
		memory.countFrom(q.Now.Add(-q.Addon.DegradedAfter()))
	}
	memory.looked = memory.looked || listed && err == nil
	worst, since, key := memory.Worst()
	if worst == nil {
		return nil
	}
	if was.Phase != addonsv1.AddonDegraded && !slices.Contains(changed, key) && q.Watched.HasChanged(q.Workload.Conn, release, key) {
		return nil // it may be well by now: the next look, which is due soon, tells
	}
	if left := since.Add(q.Addon.DegradedAfter()).Sub(q.Now); left > 0 {
		one.RetryAfter = retry.Sooner(one.RetryAfter, left)
		return nil
	}
	return &decide.Said{Phase: addonsv1.AddonDegraded, Reason: worst.Reason, Message: worst.Text(Hiding(in))}
}

// Hiding returns what hides the secrets of an add-on in words of its cluster. While these aren't known, it hides all.
func Hiding(in *inputs.Inputs) func(words string) string {
	return func(words string) string {
		if in == nil || in.Recorded {
			return message.Redacted
		}
		return message.Redact(words, in.Secrets)
	}
}

// lookAtChanged looks at objects that have changed, and notes when the next look may come.
func (q Health) lookAtChanged(ctx context.Context, changed []deliver.ObjectKey) error {
	pause, err := q.read(ctx, changed)
	if pause > 0 {
		q.Watched.LookAgain(q.Workload.Conn, q.Addon.Release(), pause)
	}
	if err != nil {
		q.Watched.LookAgain(q.Workload.Conn, q.Addon.Release(), pauseForRequest, changed...)
	}
	return err
}

// read reads objects, and notes what is wrong with them. It returns how long the next look is to wait.
func (q Health) read(ctx context.Context, objects []deliver.ObjectKey) (pause time.Duration, _ error) {
	if len(objects) == 0 {
		return 0, nil
	}
	target, err := q.Workload.As(q.Addon.Spec.ServiceAccountName)
	if err != nil {
		return 0, err
	}
	checks, err := readiness.Compile(q.Addon.Readiness)
	if err != nil {
		return 0, nil //nolint:nilerr // the add-on is refused for it at its next upgrade
	}
	found, requests := make([]objectHealth, len(objects)), make([]int, len(objects))
	group, ctx := contained.NewGroup(ctx)
	group.SetLimit(maxLooks)
	for i, key := range objects {
		group.Go(func() (err error) {
			found[i].finding, found[i].before, requests[i], err = health.Look(ctx, target.Client, key, checks, q.Memory.objects[key].before)
			return err
		})
	}
	err = group.Wait()
	if err == nil {
		for i, key := range objects {
			q.Memory.Note(key, found[i].finding, found[i].before, q.Now)
		}
	}
	return time.Duration(slices.Max(requests)) * pauseForRequest, err
}
