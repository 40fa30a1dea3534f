// SPDX-License-Identifier: Apache-2.0

package arbiter

import (
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/utils/clock"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// Observer knows which instances are alive. It remembers when it saw the last sign of life change,
// by its own clock, as leader election does with leases. An instance that it hasn't seen before
// counts as alive from now.
//
// Key: the UID of the ProviderInstance.
// Bound: the instances that are there.
// Lost with it: an instance that has ended counts as alive for a while.
type Observer struct {
	clock clock.PassiveClock

	mu        sync.Mutex
	sightings map[types.UID]sighting
}

// sighting is what is remembered of one instance.
type sighting struct {
	instance *addonsv1.ProviderInstance // without status; never changed
	sign     sign
	since    time.Time // when the sign was seen first
}

// sign is what only a living process changes: its heartbeat, and its spec when it takes over.
type sign struct {
	heartbeat  int64 // in microseconds, the precision of the API
	generation int64
}

// Known is an instance (without its status), and how long it still counts as alive.
type Known struct {
	Instance *addonsv1.ProviderInstance
	// Remaining is not positive once the instance expired.
	Remaining time.Duration
	// Deleted says that the object is gone. Its process may not know yet.
	Deleted bool
}

// NewObserver returns an observer that has seen nothing yet.
func NewObserver(c clock.PassiveClock) *Observer {
	return &Observer{clock: c, sightings: map[types.UID]sighting{}}
}

// Noticed takes in what a watch showed, which may be late.
func (o *Observer) Noticed(pi *addonsv1.ProviderInstance) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.notice(pi)
}

// Vanished takes in that a watch showed the end of an object. A process that was Waiting had
// nothing to lose. Any other process may not know yet that its object is gone.
func (o *Observer) Vanished(pi *addonsv1.ProviderInstance) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.notice(pi).instance.Spec.Claim == addonsv1.ScopeWaiting {
		delete(o.sightings, pi.UID)
	}
}

// Remaining returns how long an instance that a watch showed still counts as
// alive if it shows no sign of life.
func (o *Observer) Remaining(pi *addonsv1.ProviderInstance) time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.notice(pi).remaining(o.clock.Now())
}

// Read takes in the answer to a consistent GET that was sent at asOf. It returns how
// long the instance still counts as alive if it shows no sign of life.
func (o *Observer) Read(pi *addonsv1.ProviderInstance, asOf time.Time) time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.see(pi).remaining(asOf)
}

// Listed takes in the answer to a consistent LIST that was sent at asOf, and returns all instances
// that count. A deleted one that had a claim may still run, so it counts until it expires.
func (o *Observer) Listed(items []addonsv1.ProviderInstance, asOf time.Time) []Known {
	o.mu.Lock()
	defer o.mu.Unlock()
	known := make([]Known, 0, len(items))
	listed := make(map[types.UID]bool, len(items))
	for i := range items {
		s := o.see(&items[i])
		known = append(known, Known{Instance: s.instance, Remaining: s.remaining(asOf)})
		listed[items[i].UID] = true
	}
	for uid, s := range o.sightings {
		if listed[uid] {
			continue
		}
		if left := s.remaining(asOf); left > 0 {
			known = append(known, Known{Instance: s.instance, Remaining: left, Deleted: true})
		} else {
			delete(o.sightings, uid)
		}
	}
	return known
}

// notice sees an object unless a newer version of it was seen before.
func (o *Observer) notice(pi *addonsv1.ProviderInstance) sighting {
	if s, known := o.sightings[pi.UID]; known && older(pi, s.instance) {
		return s
	}
	return o.see(pi)
}

// see remembers what is new about an instance. Versions of consistent reads are
// not compared: after a restore from a backup they start again at a lower one.
func (o *Observer) see(pi *addonsv1.ProviderInstance) sighting {
	s, known := o.sightings[pi.UID]
	if now := signOf(pi); !known || s.sign != now {
		s.sign, s.since = now, o.clock.Now()
	}
	s.instance = withoutStatus(pi)
	o.sightings[pi.UID] = s
	return s
}

// remaining counts from before the instance was read: a sign of life after that would have been seen.
func (s sighting) remaining(asOf time.Time) time.Duration {
	return expiry(s.instance) - asOf.Sub(s.since)
}

// withoutStatus returns what judge needs, and keeps no list in memory.
func withoutStatus(pi *addonsv1.ProviderInstance) *addonsv1.ProviderInstance {
	return &addonsv1.ProviderInstance{
		ObjectMeta: metav1.ObjectMeta{Namespace: pi.Namespace, Name: pi.Name, UID: pi.UID, ResourceVersion: pi.ResourceVersion},
		Spec:       pi.Spec,
	}
}

func signOf(pi *addonsv1.ProviderInstance) sign {
	return sign{heartbeat: pi.Status.HeartbeatTime.UnixMicro(), generation: pi.Generation}
}

func older(a, b *addonsv1.ProviderInstance) bool {
	order, err := resourceversion.CompareResourceVersion(a.ResourceVersion, b.ResourceVersion)
	return err == nil && order < 0
}

func expiry(pi *addonsv1.ProviderInstance) time.Duration {
	return time.Duration(pi.Spec.ExpirySeconds) * time.Second
}
