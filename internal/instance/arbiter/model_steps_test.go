// SPDX-License-Identifier: Apache-2.0

package arbiter

import (
	"slices"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// tick lets a second pass. A process whose deadline that is ends itself.
func (w *world) tick() *world {
	c := w.copied()
	c.now++
	for i := range c.processes {
		p := &c.processes[i]
		if p.phase.runs() && c.now >= p.deadline && w.weakness != noFence {
			orphan := p.request
			if orphan == nil {
				orphan = p.orphan
			}
			*p = process{phase: ended, incarnation: p.incarnation, orphan: orphan}
		}
	}
	return c
}

// ask sends a claim that a replica judges.
func (w *world) ask(i, replica int, claim addonsv1.ScopeClaim) *world {
	p := &w.processes[i]
	slot := w.setup.processes[i]
	before := w.objects[slot]
	skipped := w.skips(i, replica, claim)
	if p.request != nil || !skipped && !w.mayAsk(i, claim) {
		return nil
	}
	c := w.copied()
	after := w.object(i, claim)
	if before != nil {
		after.UID = before.UID
	}
	observer := c.observer(replica)
	known := observer.Listed(c.list(i), observer.clock.Now())
	c.observers[replica] = observer.sightings
	if judge(w.asShown(before, after, skipped), after, w.asKnown(known)) != nil {
		c.giveUp(i)
		return c
	}
	c.processes[i].request = &request{claim: claim, holder: after.Spec.Holder, sent: w.now, version: versionOf(before)}
	return c
}

// mayAsk says whether a claim is the next step of a process.
func (w *world) mayAsk(i int, claim addonsv1.ScopeClaim) bool {
	switch w.processes[i].phase {
	case idle:
		return claim == addonsv1.ScopeClaiming
	case remaking:
		return claim == addonsv1.ScopeClaiming && w.objects[w.setup.processes[i]] == nil
	case claimed, reclaimed:
		return claim == addonsv1.ScopeActive
	default:
		return false
	}
}

// skips says whether a weakness lets a process be Active without Claiming.
func (w *world) skips(i, replica int, claim addonsv1.ScopeClaim) bool {
	if claim != addonsv1.ScopeActive || w.processes[i].phase != idle {
		return false
	}
	return w.weakness == oneStep || w.weakness == oneStepHandover && w.goesOn(replica, w.objects[w.setup.processes[i]])
}

// goesOn says whether a replica takes the holder of a lease for alive and
// Active, so that the next one could go on.
func (w *world) goesOn(replica int, pi *addonsv1.ProviderInstance) bool {
	if pi == nil || pi.Spec.Claim != addonsv1.ScopeActive || pi.Spec.LeaseName == "" {
		return false
	}
	observer := w.observer(replica)
	return observer.Read(pi, observer.clock.Now()) > 0
}

// asShown is the stored object as the rules are to see it where a weakness
// takes a rule out.
func (w *world) asShown(before, after *addonsv1.ProviderInstance, skipped bool) *addonsv1.ProviderInstance {
	if !skipped && (w.weakness != namesAreFree || before == nil) {
		return before
	}
	shown := after.DeepCopy()
	shown.Spec.Version = "before"
	if w.weakness == namesAreFree {
		shown.Spec.Claim = before.Spec.Claim
	}
	return shown
}

func (w *world) asKnown(known []Known) []Known {
	switch w.weakness {
	case claimsDontCount:
		return slices.DeleteFunc(known, func(k Known) bool { return k.Instance.Spec.Claim == addonsv1.ScopeClaiming })
	case deletedIsGone:
		return slices.DeleteFunc(known, func(k Known) bool { return k.Deleted })
	default:
		return known
	}
}

// list returns what is stored. An inconsistent one shows to a process that asks
// to be active what was stored of others when it asked to claim.
func (w *world) list(asking int) []addonsv1.ProviderInstance {
	var items []addonsv1.ProviderInstance
	for i, object := range w.objects {
		if w.weakness == staleList && i != w.setup.processes[asking] && w.processes[asking].phase == claimed {
			continue
		}
		if object != nil {
			items = append(items, *object)
		}
	}
	return items
}

func (w *world) heartbeat(i int) *world {
	p := &w.processes[i]
	if p.request != nil || p.phase != claimed && p.phase != running {
		return nil
	}
	c := w.copied()
	r := &request{holder: w.holder(i), sent: w.now}
	if object := w.objects[w.setup.processes[i]]; object != nil {
		r.uid = object.UID
	}
	c.processes[i].request = r
	return c
}

// giveUp lets a process that runs end, and another one step back.
func (w *world) giveUp(i int) {
	p := &w.processes[i]
	if p.phase.runs() {
		*p = process{phase: ended, incarnation: p.incarnation, orphan: p.orphan}
		return
	}
	p.phase, p.request = idle, nil
}

// store puts the request of a process into effect. Of heartbeats and claims the
// answer comes at once; that of the last step may be late.
func (w *world) store(i int) *world {
	r := w.processes[i].request
	if r == nil || r.stored {
		return nil
	}
	c := w.copied()
	p := &c.processes[i]
	if !c.write(i, r) {
		if p.phase == running && c.objects[w.setup.processes[i]] == nil {
			p.phase, p.request = remaking, nil
		} else {
			c.giveUp(i)
		}
		return c
	}
	answered := *r
	answered.stored = true
	p.request = &answered
	if r.claim == addonsv1.ScopeActive {
		return c
	}
	return c.answer(i)
}

// answer lets a process know that its request was stored. It believes in what
// it claimed only before the deadline that its previous write gave it.
func (w *world) answer(i int) *world {
	r := w.processes[i].request
	if r == nil || !r.stored {
		return nil
	}
	c := w.copied()
	p := &c.processes[i]
	p.request = nil
	deadline := p.deadline
	p.deadline = r.sent + fenceSeconds
	if r.claim == addonsv1.ScopeClaiming || p.phase == idle {
		deadline = p.deadline
	}
	inTime := c.now < deadline || w.weakness == lateAnswersCount || w.weakness == noFence && p.phase.runs()
	switch {
	case !inTime:
		c.giveUp(i)
	case r.claim == addonsv1.ScopeClaiming && p.phase == remaking:
		p.phase = reclaimed
	case r.claim == addonsv1.ScopeClaiming:
		p.phase = claimed
	case r.claim == addonsv1.ScopeActive:
		p.phase = running
	}
	return c
}

func (w *world) crash(i int) *world {
	p := w.processes[i]
	if p.phase == ended || p.orphan != nil || w.crashes == w.setup.crashes {
		return nil
	}
	c := w.copied()
	c.crashes++
	c.processes[i] = process{phase: ended, incarnation: p.incarnation, orphan: p.request}
	return c
}

// start is a restart, or the next leader of the same lease.
func (w *world) start(i int) *world {
	p := w.processes[i]
	if p.phase != ended {
		return nil
	}
	c := w.copied()
	c.processes[i] = process{phase: idle, incarnation: p.incarnation + 1, orphan: p.orphan}
	return c
}

// end stops the controllers, steps back to Waiting and deletes the object.
func (w *world) end(i int) *world {
	p, slot := w.processes[i], w.setup.processes[i]
	object := w.objects[slot]
	if p.phase != running || p.request != nil || object == nil || object.Spec.Holder != w.holder(i) || w.crashes == w.setup.crashes {
		return nil
	}
	c := w.copied()
	c.crashes++
	c.processes[i] = process{phase: ended, incarnation: p.incarnation, orphan: p.orphan}
	waiting := object.DeepCopy()
	waiting.Spec.Claim = addonsv1.ScopeWaiting
	c.objects[slot] = nil
	for r := range c.replicas {
		observer := c.observer(r)
		observer.Vanished(waiting)
		c.observers[r] = observer.sightings
	}
	return c
}

func (w *world) storeOrphan(i int) *world {
	r := w.processes[i].orphan
	if r == nil || r.stored {
		return nil
	}
	c := w.copied()
	c.processes[i].orphan = nil
	c.write(i, r)
	return c
}

func (w *world) deleteByHand(slot int) *world {
	if w.objects[slot] == nil || w.deletions == w.setup.deletions {
		return nil
	}
	c := w.copied()
	c.deletions++
	c.objects[slot] = nil
	return c
}

// watched lets the replicas whose watch works see what was stored.
func (w *world) watched(slot int) {
	for r := range w.watching {
		observer := w.observer(r)
		observer.Noticed(w.objects[slot])
		w.observers[r] = observer.sightings
	}
}

// forget is a restart of a replica.
func (w *world) forget(replica int) *world {
	if w.forgets == w.setup.forgets {
		return nil
	}
	c := w.copied()
	c.forgets++
	c.observers[replica] = nil
	if replica >= w.watching {
		return c
	}
	observer := c.observer(replica)
	if w.weakness == unseenIsDead {
		observer.clock = clockAt(w.now - expirySeconds)
	}
	for slot := range w.setup.objects {
		if w.objects[slot] != nil {
			observer.Noticed(w.objects[slot])
		}
	}
	c.observers[replica] = observer.sightings
	return c
}
