// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"slices"
	"time"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// Decide returns what is to be done now. Equal inputs have equal decisions.
func Decide(in Input) Decision {
	d := Decision{Phase: addonsv1.RolloutHalted}
	in.wake(&d, in.Stop.Until)
	if in.Target == "" {
		return d
	}
	waves, running := in.waves(&d)
	for i := range waves {
		d.Waves = append(d.Waves, waves[i].count)
	}
	if d.Wave = in.exceeded(d.Waves); d.Wave >= 0 {
		d.Reject = in.Awaited || in.Strategy.RollsBack && in.HasPrevious
		return d
	}
	for i := range waves {
		w := &waves[i]
		d.Wave = i
		turns := w.turns()
		if len(turns) > 0 {
			if phase := in.gate(w, i); phase != "" {
				d.Phase = phase
				return d
			}
			free := max(0, atLeastOne(w.MaxConcurrent, w.count.Total)-running-len(d.Start))
			for _, m := range turns[:min(free, len(turns))] {
				d.Start = append(d.Start, m.Name)
			}
		}
		isLast := i == len(waves)-1
		if phase := in.unfinished(w, isLast, &d); phase != "" {
			d.Phase = phase
			return d
		}
		d.WavesDone++
	}
	switch {
	case in.othersLag(d.WavesDone):
		d.Phase = addonsv1.RolloutWaitingForInstances
	case in.Back:
		d.Phase = addonsv1.RolloutRolledBack
	default:
		d.Phase = addonsv1.RolloutCompleted
	}
	return d
}

// exceeded returns the index of the first wave in which more clusters failed than may, -1 if there is none. A known
// target has no such limit: a cluster that fails weeks later halts nothing.
func (in *Input) exceeded(counts []Count) int {
	if in.Known {
		return -1
	}
	return slices.IndexFunc(counts, func(c Count) bool { return len(c.Failed) > AtMost(in.Strategy.MaxFailed, c.Total) })
}

// gate returns what keeps clusters of a wave from starting, "" for nothing. All waves before it are over.
func (in *Input) gate(w *wave, i int) addonsv1.RolloutPhase {
	switch {
	case in.othersLag(i):
		return addonsv1.RolloutWaitingForInstances
	case w.NeedsApproval && !in.Approved.HasAny(All, w.Name):
		return addonsv1.RolloutWaitingForApproval
	}
	return in.Stop.Phase
}

// othersLag reports whether another instance hasn't done so many waves yet. A known target waits for nobody.
func (in *Input) othersLag(waves int) bool {
	return !in.Known && len(in.lagging(waves)) > 0
}

// unfinished returns the phase of a wave that isn't over, "" if it is. A wave of which no cluster is ready has shown
// nothing. The last wave has no soak.
func (in *Input) unfinished(w *wave, isLast bool, d *Decision) addonsv1.RolloutPhase {
	switch {
	case w.has(waits, inFlight) && in.Back:
		return addonsv1.RolloutRollingBack
	case w.has(waits, inFlight):
		return addonsv1.RolloutProgressing
	case len(w.members) == 0, in.Known, in.Approved.Has(All):
		return ""
	case w.count.Done == 0:
		return addonsv1.RolloutWaitingForClusters
	case isLast:
		return ""
	}
	end := w.count.ReadySince.Add(w.Soak)
	if !in.Now.Before(end) {
		return ""
	}
	in.wake(d, end)
	return addonsv1.RolloutSoaking
}

// wake has the decision made again at a time, if that is to come.
func (in *Input) wake(d *Decision, at time.Time) {
	if at.After(in.Now) && (d.Next.IsZero() || at.Before(d.Next)) {
		d.Next = at
	}
}
