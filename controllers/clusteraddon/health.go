// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"context"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/decide"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/inputs"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/wanted"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/workload"
	"github.com/cluster-chandler/chandler/internal/deliver"
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

// healthCheck evaluates the workloads of an installed add-on.
type healthCheck struct {
	watched  *fleetwatch.Objects
	workload workload.Cluster
	addon    *wanted.Addon
	memory   *healthMemory
	was      addonsv1.AddonStatus
	now      time.Time
}

// look looks at the workloads that have changed of an add-on that is Ready. It returns that the add-on is Degraded once one of
// them hasn't been ready for long enough, nil before. It changes nothing on the cluster.
func (q healthCheck) look(ctx context.Context, record deliver.Summary, in *inputs.Inputs, one *addonResult) *decide.Said {
	release, memory, was := q.addon.Release(), q.memory, q.was
	if policy, _ := q.addon.DriftRules(); policy == addonsv1.DriftPolicyIgnore {
		return nil // nothing is watched
	}
	if one.unreachable || one.status.Revision != int32(record.Revision) && one.found == nil {
		return nil
	}
	memory.turnTo(int(one.status.Revision))
	if one.found != nil { // each object was found ready just now
		q.watched.Evaluated(q.workload.Conn, release, one.found)
		memory.noteReady(one.found)
		return nil
	}
	changed, listed := q.watched.Changed(q.workload.Conn, release)
	err := q.lookAtChanged(ctx, changed, hiding(in))
	if !memory.looked && was.Phase == addonsv1.AddonDegraded && was.Revision == one.status.Revision {
		if !listed || err != nil { // nothing says that it is otherwise now
			is := saidIn(was)
			return &is
		}
		memory.countFrom(q.now.Add(-q.addon.DegradedAfter()))
	}
	memory.looked = memory.looked || listed && err == nil
	worst, key := memory.worst()
	if worst == nil {
		return nil
	}
	if was.Phase != addonsv1.AddonDegraded && !slices.Contains(changed, key) && q.watched.HasChanged(q.workload.Conn, release, key) {
		return nil // it may be well by now: the next look, which is due soon, tells
	}
	if left := worst.since.Add(q.addon.DegradedAfter()).Sub(q.now); left > 0 {
		one.retryAfter = retry.Sooner(one.retryAfter, left)
		return nil
	}
	return &decide.Said{Phase: addonsv1.AddonDegraded, Reason: worst.finding.Reason, Message: worst.finding.Message}
}

// hiding returns what hides the secrets of an add-on in words of its cluster. While these aren't known, it hides all.
func hiding(in *inputs.Inputs) func(words string) string {
	return func(words string) string {
		if in == nil || in.Recorded {
			return message.Redacted
		}
		return message.Redact(words, in.Secrets)
	}
}

// lookAtChanged looks at objects that have changed, and notes when the next look may come.
func (q healthCheck) lookAtChanged(ctx context.Context, changed []deliver.ObjectKey, hide func(string) string) error {
	pause, err := q.read(ctx, changed, hide)
	if pause > 0 {
		q.watched.LookAgain(q.workload.Conn, q.addon.Release(), pause)
	}
	if err != nil {
		q.watched.LookAgain(q.workload.Conn, q.addon.Release(), pauseForRequest, changed...)
	}
	return err
}

// read reads objects, and notes what is wrong with them. It returns how long the next look is to wait.
func (q healthCheck) read(ctx context.Context, objects []deliver.ObjectKey, hide func(string) string) (pause time.Duration, _ error) {
	if len(objects) == 0 {
		return 0, nil
	}
	target, err := q.workload.As(q.addon.Spec.ServiceAccountName)
	if err != nil {
		return 0, err
	}
	checks, err := readiness.Compile(q.addon.Readiness)
	if err != nil {
		return 0, nil //nolint:nilerr // the add-on is refused for it at its next upgrade
	}
	found, requests := make([]objectHealth, len(objects)), make([]int, len(objects))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(maxLooks)
	for i, key := range objects {
		group.Go(func() (err error) {
			found[i].finding, found[i].before, requests[i], err = health.Look(ctx, target.Client, key, checks, q.memory.objects[key].before)
			return err
		})
	}
	err = group.Wait()
	if err == nil {
		for i, key := range objects {
			if f := found[i].finding; f != nil {
				f.Message, f.Words = f.Text(hide), ""
			}
			q.memory.note(key, found[i], q.now)
		}
	}
	return time.Duration(slices.Max(requests)) * pauseForRequest, err
}
