// SPDX-License-Identifier: Apache-2.0

package grant_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	testclock "k8s.io/utils/clock/testing"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/instance/grant"
)

const (
	expirySeconds = 6
	fenceSeconds  = 4 // two thirds: then a process ends itself
)

// world is all that takes part: processes that claim, the API server that stores, and two processes
// that grant. The rules and the memories of those are the real ones. Each thing that happens is a step.
type world struct {
	setup
	weak      weakness
	random    *rand.Rand
	clock     *testclock.FakePassiveClock
	second    int
	version   int
	objects   [3]*addonsv1.ProviderInstance
	processes []*process
	granters  []*granter
	runs      int
}

type phase int

const (
	ended phase = iota
	waiting
	running
)

type process struct {
	phase    phase
	slot     int
	holder   string
	deadline int // until when it counts on its grant
	// One request is under way at a time. That of a process that crashed may still be stored.
	request, orphan *request
}

// request is a heartbeat, or a claim over a version. Its answer shows the object.
type request struct {
	holder   string
	claim    bool
	version  string // "" to create
	uid      types.UID
	sent     int
	answered bool
	answer   *addonsv1.ProviderInstance // nil if it wasn't stored
}

type granter struct {
	memory  *grant.Memory
	listed  []addonsv1.ProviderInstance
	asOf    time.Time
	changes []grant.Change
	deleted []*addonsv1.ProviderInstance // that its watch will show
}

func newWorld(s setup, weak weakness, random *rand.Rand) *world {
	w := &world{setup: s, weak: weak, random: random, clock: testclock.NewFakePassiveClock(time.Unix(0, 0))}
	for _, slot := range s.processes {
		w.processes = append(w.processes, &process{slot: slot})
	}
	for range 2 {
		w.granters = append(w.granters, &granter{memory: grant.NewMemory(w.clock)})
	}
	return w
}

// step lets something happen, and says what.
func (w *world) step() string {
	for {
		if what := w.try(); what != "nothing" {
			return what
		}
	}
}

func (w *world) try() string {
	i, g := w.random.IntN(len(w.processes)), w.random.IntN(len(w.granters))
	switch n := w.random.IntN(100); {
	case n < 9:
		return w.tick()
	case n < 18:
		return w.claim(i)
	case n < 24:
		return w.beat(i)
	case n < 38:
		return w.storeRequest(i)
	case n < 52:
		return w.takeAnswer(i)
	case n < 66:
		return w.list(g)
	case n < 79:
		return w.evaluate(g)
	case n < 92:
		return w.storeChange(g)
	case n < 94:
		return w.watchDeletion(g)
	case n < 96:
		return w.crash(i)
	case n < 97:
		return w.leave(i)
	case n < 98 && w.watches:
		return w.deleteByHand(w.processes[i].slot)
	case n < 99 && w.restarts:
		return w.restart(g)
	default:
		return w.storeOrphan(i)
	}
}

func (w *world) tick() string {
	w.second++
	w.clock.SetTime(time.Unix(int64(w.second), 0))
	for i, p := range w.processes {
		if p.phase == running && w.second >= p.deadline && w.weak != noFence && w.weak != grantsForEver {
			w.end(i)
		}
	}
	return "time passes"
}

// claim has a process write its claim, if the object is free for it.
func (w *world) claim(i int) string {
	p := w.processes[i]
	if p.phase == ended {
		w.version++
		p.phase, p.holder = waiting, fmt.Sprintf("%d-%d", i, w.version)
	}
	pi := w.objects[p.slot]
	if p.request != nil || p.phase == running || pi != nil && pi.Spec.Holder == p.holder || pi != nil && !w.lease && !grant.IsExpired(pi) {
		return "nothing"
	}
	if w.lease { // the next leader: the lease excludes the previous one
		for j, other := range w.processes {
			if j != i && other.slot == p.slot {
				w.end(j)
			}
		}
	}
	p.request = &request{holder: p.holder, claim: true, sent: w.second}
	if pi != nil {
		p.request.version, p.request.uid = pi.ResourceVersion, pi.UID
	}
	return fmt.Sprintf("process %d claims", i)
}

// end ends a process by itself: what it wrote may be stored later.
func (w *world) end(i int) {
	p := w.processes[i]
	if p.request != nil && !p.request.answered {
		p.orphan = p.request
	}
	p.phase, p.request = ended, nil
}

func (w *world) beat(i int) string {
	p := w.processes[i]
	pi := w.objects[p.slot]
	if p.request != nil || p.phase == ended || pi == nil && p.phase == waiting || pi != nil && p.phase == waiting && pi.Spec.Holder != p.holder {
		return "nothing"
	}
	p.request = &request{holder: p.holder, sent: w.second}
	if pi != nil {
		p.request.uid = pi.UID
	}
	return fmt.Sprintf("process %d sends a heartbeat", i)
}

func (w *world) storeRequest(i int) string {
	p := w.processes[i]
	if p.request == nil || p.request.answered {
		return "nothing"
	}
	p.request.answered, p.request.answer = true, w.write(p.slot, p.request)
	return fmt.Sprintf("the request of process %d is stored: %v", i, p.request.answer != nil)
}

func (w *world) storeOrphan(i int) string {
	p := w.processes[i]
	if p.orphan == nil {
		return "nothing"
	}
	stored := w.write(p.slot, p.orphan)
	p.orphan = nil
	return fmt.Sprintf("a late request of process %d is stored: %v", i, stored != nil)
}

// write is the API server: it stores a claim over the version that was read, and a heartbeat over any version of the object.
func (w *world) write(slot int, r *request) *addonsv1.ProviderInstance {
	stored := w.objects[slot]
	w.version++
	var next *addonsv1.ProviderInstance
	switch {
	case !r.claim && (stored == nil || stored.UID != r.uid):
		return nil
	case !r.claim:
		next = stored.DeepCopy()
		next.Status.HeartbeatTime = metav1.NewMicroTime(time.UnixMicro(int64(w.version)))
		if next.Spec.Holder == r.holder {
			next.Status.Conditions = nil // with those that the process knows
		}
	case stored == nil && r.version == "":
		next = &addonsv1.ProviderInstance{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: strconv.Itoa(slot), UID: types.UID(strconv.Itoa(w.version))}}
	case stored == nil || stored.ResourceVersion != r.version:
		return nil
	default:
		next = stored.DeepCopy()
	}
	if r.claim {
		next.Generation++
		next.Spec.Holder, next.Spec.Claim, next.Spec.ExpirySeconds = r.holder, addonsv1.ScopeClaiming, expirySeconds
		if w.lease {
			next.Spec.LeaseName = "lease"
		}
		next.Spec.Namespaces = [][]string{nil, {"team-a", "team-b"}, {"team-b", "team-c"}}[slot]
	}
	w.put(slot, next)
	return next
}

func (w *world) put(slot int, pi *addonsv1.ProviderInstance) {
	w.version++
	pi.ResourceVersion = strconv.Itoa(w.version)
	w.objects[slot] = pi
	for _, g := range w.granters {
		if w.watches || w.random.IntN(4) == 0 {
			g.memory.Evaluate(w.stored(), w.clock.Now()) // as the cache shows it
		}
	}
}

// takeAnswer lets a process know what became of its request, as keep and round of the registration do.
func (w *world) takeAnswer(i int) string {
	p := w.processes[i]
	r := p.request
	if r == nil || !r.answered {
		return "nothing"
	}
	p.request = nil
	pi := r.answer
	switch {
	case pi == nil && p.phase == running && w.objects[p.slot] == nil && !r.claim: // it was deleted, and is made again
		p.request = &request{holder: p.holder, claim: true, sent: w.second}
	case pi == nil || pi.Spec.Holder != p.holder:
		if p.phase == running {
			w.end(i)
		}
	case r.claim:
	case w.holds(pi):
		p.deadline = r.sent + fenceSeconds
		if p.phase == waiting && (w.second < p.deadline || w.weak == grantsForEver) {
			p.phase = running
			w.runs++
		}
	case p.phase == running && pi.Status.Grant != nil && pi.Status.Grant.State != addonsv1.GrantReserved && w.weak != noFence:
		w.end(i)
	}
	return fmt.Sprintf("process %d has its answer", i)
}

func (w *world) holds(pi *addonsv1.ProviderInstance) bool {
	g := pi.Status.Grant
	return pi.HoldsScope() || w.weak == oneStep && g != nil && g.State == addonsv1.GrantReserved && g.Holder == pi.Spec.Holder
}

func (w *world) crash(i int) string {
	w.end(i)
	return fmt.Sprintf("process %d crashes", i)
}

// leave ends a process in order: it gives its scope up, and deletes the object.
func (w *world) leave(i int) string {
	p := w.processes[i]
	pi := w.objects[p.slot]
	if p.phase != running || p.request != nil || pi == nil || pi.Spec.Holder != p.holder {
		return "nothing"
	}
	pi = pi.DeepCopy()
	pi.Spec.Claim = addonsv1.ScopeWaiting
	w.delete(p.slot, pi)
	p.phase = ended
	return fmt.Sprintf("process %d leaves", i)
}

func (w *world) deleteByHand(slot int) string {
	if w.objects[slot] == nil {
		return "nothing"
	}
	w.delete(slot, w.objects[slot])
	return fmt.Sprintf("somebody deletes object %d", slot)
}

func (w *world) delete(slot int, last *addonsv1.ProviderInstance) {
	w.objects[slot] = nil
	for i, g := range w.granters {
		g.deleted = append(g.deleted, last)
		if w.watches {
			w.watchDeletion(i)
		}
	}
}

// list asks for all that is stored. The answer may be late.
func (w *world) list(g int) string {
	n := w.granters[g]
	before := n.listed
	n.listed, n.asOf = w.stored(), w.clock.Now()
	for i := range n.listed {
		for j := range before {
			if w.weak == mixedList && n.listed[i].UID == before[j].UID && w.random.IntN(2) == 0 {
				n.listed[i] = before[j]
			}
		}
	}
	if w.random.IntN(3) > 0 { // mostly nothing comes in between
		return w.evaluate(g)
	}
	return fmt.Sprintf("granter %d lists", g)
}

func (w *world) stored() []addonsv1.ProviderInstance {
	list := []addonsv1.ProviderInstance{}
	for _, pi := range w.objects {
		if pi != nil {
			list = append(list, *pi.DeepCopy())
		}
	}
	return list
}

func (w *world) evaluate(g int) string {
	n := w.granters[g]
	if n.listed == nil {
		return "nothing"
	}
	n.changes, _ = n.memory.Evaluate(n.listed, n.asOf)
	if w.weak != mixedList {
		n.listed = nil
	}
	if len(n.changes) > 0 && w.random.IntN(3) > 0 {
		return w.storeChange(g)
	}
	return fmt.Sprintf("granter %d evaluates: %d changes", g, len(n.changes))
}

// storeChange stores a status over the version that was evaluated.
func (w *world) storeChange(g int) string {
	n := w.granters[g]
	if len(n.changes) == 0 {
		return "nothing"
	}
	c := n.changes[0]
	n.changes = n.changes[1:]
	slot, _ := strconv.Atoi(c.After.Name)
	stored := w.objects[slot]
	if stored == nil || stored.ResourceVersion != c.Before.ResourceVersion && (w.weak != versionsDontCount || stored.UID != c.Before.UID) {
		return fmt.Sprintf("granter %d is too late for %d", g, slot)
	}
	next := stored.DeepCopy()
	next.Status = *c.After.Status.DeepCopy()
	next.Status.HeartbeatTime = stored.Status.HeartbeatTime // a patch doesn't have it
	w.put(slot, next)
	return fmt.Sprintf("granter %d stores %+v of %d", g, next.Status.Grant, slot)
}

func (w *world) watchDeletion(g int) string {
	n := w.granters[g]
	if len(n.deleted) == 0 {
		return "nothing"
	}
	if w.weak == deletedIsGone {
		n.deleted[0].Spec.Claim = addonsv1.ScopeWaiting
	}
	n.memory.Vanish(n.deleted[0])
	n.deleted = n.deleted[1:]
	return fmt.Sprintf("granter %d sees a deletion", g)
}

// restart forgets all. A change that was on its way may still be stored.
func (w *world) restart(g int) string {
	w.granters[g].memory, w.granters[g].deleted = grant.NewMemory(w.clock), nil
	return fmt.Sprintf("granter %d restarts", g)
}

// beatAtOnce has a process claim, and have its answers without delay.
func (w *world) beatAtOnce(i int) {
	for range 2 {
		w.claim(i)
		w.storeRequest(i)
		w.takeAnswer(i)
		w.beat(i)
		w.storeRequest(i)
		w.takeAnswer(i)
	}
}
