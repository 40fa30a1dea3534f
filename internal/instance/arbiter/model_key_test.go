// SPDX-License-Identifier: Apache-2.0

package arbiter

import (
	"slices"
	"strconv"
	"time"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// key is the same for states that differ in nothing that matters: times count
// from now, versions by what they are compared with.
func (w *world) key() string {
	k := digest{byte(w.crashes), byte(w.deletions), byte(w.forgets)}
	for i := range w.setup.processes {
		k = w.ofProcess(k, i)
	}
	for slot := range w.setup.objects {
		k = w.ofObject(k, slot)
	}
	for r := range w.replicas {
		k = w.ofDeleted(k, r)
	}
	return string(k)
}

type digest []byte

// nothing stands for what isn't there.
const nothing = 9

func (d digest) put(values ...int) digest {
	for _, v := range values {
		d = append(d, byte(v))
	}
	return d
}

func yes(b bool) int {
	if b {
		return 1
	}
	return 0
}

var claimNumbers = map[addonsv1.ScopeClaim]int{"": 0, addonsv1.ScopeWaiting: 1, addonsv1.ScopeClaiming: 2, addonsv1.ScopeActive: 3}

func (w *world) ofProcess(d digest, i int) digest {
	p, object := w.processes[i], w.objects[w.setup.processes[i]]
	d = d.put(int(p.phase))
	if p.phase == claimed || p.phase.runs() {
		d = d.put(max(p.deadline-w.now, -1))
	}
	d = d.put(yes(object != nil && object.Spec.Holder == w.holder(i)))
	for _, r := range []*request{p.request, p.orphan} {
		if r == nil {
			d = d.put(nothing)
			continue
		}
		d = d.put(claimNumbers[r.claim], max(r.sent-w.now, -fenceSeconds), yes(r.version == versionOf(object)), yes(r.stored), yes(r.holder == w.holder(i)),
			yes(object != nil && object.UID == r.uid), yes(object != nil && object.Spec.Holder == r.holder))
	}
	return d
}

func (w *world) ofObject(d digest, slot int) digest {
	object := w.objects[slot]
	if object == nil {
		return d.put(nothing)
	}
	d = d.put(claimNumbers[object.Spec.Claim])
	for r := range w.replicas {
		s, ok := w.observers[r][object.UID]
		if !ok {
			d = d.put(nothing)
			continue
		}
		d = d.put(yes(s.sign == signOf(object)), max(w.left(s), 0), claimNumbers[s.instance.Spec.Claim], yes(s.instance.Spec.Holder == object.Spec.Holder))
	}
	return d
}

// ofDeleted is what a replica remembers of objects that are gone.
func (w *world) ofDeleted(d digest, replica int) digest {
	var deleted []string
	for uid, s := range w.observers[replica] {
		slot, _ := strconv.Atoi(s.instance.Name)
		if w.objects[slot] != nil && w.objects[slot].UID == uid || w.left(s) <= 0 {
			continue
		}
		one := digest{}.put(slot, w.left(s), claimNumbers[s.instance.Spec.Claim])
		for i := range w.setup.processes {
			one = one.put(yes(s.instance.Spec.Holder == w.holder(i)))
		}
		deleted = append(deleted, string(one))
	}
	slices.Sort(deleted)
	d = d.put(100 + len(deleted))
	for _, one := range deleted {
		d = append(d, one...)
	}
	return d
}

func (w *world) left(s sighting) int {
	return int(s.remaining(clockAt(w.now).Now()) / time.Second)
}
