// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"slices"
	"time"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// Decide returns what is to be done now. Equal inputs have equal decisions.
func Decide(in Input) Decision {
	d := Decision{Phase: addonsv1.RolloutHalted, Mode: in.Mode}
	in.wake(&d, in.Stop.Until)
	if in.Target == "" {
		return d
	}
	waves, running := in.waves(&d)
	for i := range waves {
		d.Waves, d.Members = append(d.Waves, waves[i].count), append(d.Members, waves[i].members)
	}
	if !in.halts(&d) {
		in.proceed(&d, waves, running)
		d.Begins = d.Begins || len(d.Start) > 0
	}
	in.tell(&d, running)
	return d
}

// proceed goes through the waves until one that isn't over, starts clusters of it, and sets the phase.
func (in *Input) proceed(d *Decision, waves []wave, running int) {
	isUnsure := slices.ContainsFunc(d.Waves, in.isUnsure)
	for i := range waves {
		w := &waves[i]
		d.Wave = i
		isOver := in.Over.Has(w.Name)
		if turns := w.turns(); len(turns) > 0 {
			switch phase := in.gate(w, i, isOver); {
			case phase != "" && !isOver:
				d.Phase = phase
				return
			case phase == "" && !isUnsure:
				free := max(0, atLeastOne(w.MaxConcurrent, in.total(w.count))-running-in.Elsewhere.OnTheWay-len(d.Start))
				for _, m := range turns[:min(free, len(turns))] {
					d.Start = append(d.Start, m.Name)
				}
			}
		}
		if !isOver {
			if d.Phase = in.unfinished(w, i == len(waves)-1, d); d.Phase != "" {
				return
			}
		}
		d.Over = append(d.Over, w.Name)
	}
	isSeen := slices.ContainsFunc(d.Waves, func(c Count) bool { return c.Done > 0 })
	switch {
	case in.othersLag(len(d.Over)):
		d.Phase = addonsv1.RolloutWaitingForInstances
	case in.Mode == Returning:
		d.Phase = addonsv1.RolloutRolledBack
	case !isSeen && in.Mode != Following:
		d.Phase, d.Over = addonsv1.RolloutWaitingForClusters, d.Over[:len(d.Over)-1]
	default:
		d.Phase, d.Completed = addonsv1.RolloutCompleted, true
	}
}

// halts reports whether no cluster starts any more, as more clusters failed than may, or did. If the strategy says so, the
// target is rejected instead; not if a person halted the rollout.
func (in *Input) halts(d *Decision) bool {
	if in.Mode == Following || in.Mode == AllAtOnce {
		return false
	}
	at := slices.IndexFunc(d.Waves, in.isExceeded)
	if d.Wave = at; at < 0 {
		if d.Wave = in.haltedAt(d); d.Wave < 0 {
			d.Wave = 0
			return false
		}
	}
	mayReject := in.Mode != Returning && in.Strategy.RollsBack && in.Stop.Phase != addonsv1.RolloutPaused && (at >= 0 || in.Halted.Failed > 0)
	isThere := func(c Cluster) bool { return c.Assigned == in.Target && c.GoesBackTo != "" }
	d.Reject = mayReject && slices.ContainsFunc(in.Clusters, isThere)
	if at >= 0 && !d.Reject {
		if failed := in.failed(d.Waves[at]); in.Halted == nil || in.Halted.Failed < failed {
			d.Halt = &Halt{Wave: d.Waves[at].Name, Failed: failed}
		}
	}
	return true
}

// haltedAt returns the index of the wave that the rollout is halted at since an earlier decision, -1 if it isn't. The halt
// ends once so many clusters may fail. One of the time before a rejection has ended with that.
func (in *Input) haltedAt(d *Decision) int {
	if in.Halted == nil || in.Mode == Returning && in.Returned.IsZero() {
		return -1
	}
	at := max(0, slices.IndexFunc(d.Waves, func(c Count) bool { return c.Name == in.Halted.Wave }))
	if in.Halted.Failed > 0 && in.Halted.Failed <= AtMost(in.Strategy.MaxFailed, in.total(d.Waves[at])) {
		d.Resume = true
		return -1
	}
	return at
}

// isExceeded reports whether more clusters of a wave failed than may.
func (in *Input) isExceeded(c Count) bool {
	return in.failed(c) > AtMost(in.Strategy.MaxFailed, in.total(c))
}

// isUnsure reports whether more clusters of a wave may have failed than may, with those that failed just now.
func (in *Input) isUnsure(c Count) bool {
	return in.Mode != Following && in.Mode != AllAtOnce && in.failed(c)+c.Unsure > AtMost(in.Strategy.MaxFailed, in.total(c))
}

// gate returns what keeps clusters of a wave from starting, "" for nothing. All waves before it are over. Clusters that
// follow into a wave which is over need no approval.
func (in *Input) gate(w *wave, i int, isOver bool) addonsv1.RolloutPhase {
	switch {
	case in.Replaced:
		return addonsv1.RolloutHalted
	case !isOver && in.Mode == Staged && in.othersLag(i):
		return addonsv1.RolloutWaitingForInstances
	case !isOver && w.NeedsApproval && !in.Approved.HasAny(All, w.Name) && !in.Promoted.Has(w.Name):
		return addonsv1.RolloutWaitingForApproval
	}
	return in.Stop.Phase
}

// othersLag reports whether another instance hasn't done so many waves yet. Going back from a target waits for nobody.
func (in *Input) othersLag(waves int) bool {
	return (in.Mode == Staged || in.Mode == SteppingBack) && !in.Approved.Has(All) && len(in.lagging(waves)) > 0
}

// unfinished returns the phase of a wave that isn't over, "" if it is. A wave of which no cluster is ready has shown
// nothing for those after it, and so has one whose selector takes no cluster.
func (in *Input) unfinished(w *wave, isLast bool, d *Decision) addonsv1.RolloutPhase {
	end := w.count.ReadySince.Add(w.Soak)
	if in.Mode != Staged {
		end = w.count.ReadySince.Add(in.Strategy.MinReady)
	}
	isEmpty := len(w.members) == 0
	switch {
	case in.isWaited(w) && in.Mode == Returning:
		return addonsv1.RolloutRollingBack
	case in.isWaited(w):
		return addonsv1.RolloutProgressing
	case in.Mode == Following, in.Mode == Returning, in.Promoted.Has(w.Name), in.Approved.Has(All) && !isLast:
		return ""
	case isEmpty && (w.Optional || w.Selector == nil):
		return ""
	case w.count.Done == 0 && (!isLast || in.Mode != Staged), in.Mode == AllAtOnce && len(w.count.Failed) > 0:
		return addonsv1.RolloutWaitingForClusters
	case !in.Now.Before(end):
		return ""
	}
	d.SoaksUntil = end
	in.wake(d, end)
	return addonsv1.RolloutSoaking
}

// wake has the decision made again at a time, if that is to come.
func (in *Input) wake(d *Decision, at time.Time) {
	if at.After(in.Now) && (d.Next.IsZero() || at.Before(d.Next)) {
		d.Next = at
	}
}
