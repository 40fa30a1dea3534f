// SPDX-License-Identifier: Apache-2.0

package arbiter

import (
	"fmt"
	"maps"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	testclock "k8s.io/utils/clock/testing"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// write is what the API server does: it stores a claim over the version that
// admission was shown, and a heartbeat over any version of the same object.
func (w *world) write(i int, r *request) bool {
	slot := w.setup.processes[i]
	stored := w.objects[slot]
	w.version++
	if r.claim == "" {
		if stored == nil || stored.UID != r.uid {
			return false
		}
		next := stored.DeepCopy()
		next.ResourceVersion = strconv.Itoa(w.version)
		next.Status.HeartbeatTime = metav1.NewMicroTime(time.UnixMicro(int64(w.version)))
		w.objects[slot] = next
		w.watched(slot)
		return stored.Spec.Holder == r.holder // else its sender sees that it lost the object
	}
	if versionOf(stored) != r.version && (w.weakness != versionsDontCount || stored == nil) {
		return false
	}
	next := w.object(i, r.claim)
	next.Spec.Holder = r.holder
	next.UID = types.UID(strconv.Itoa(w.version))
	next.Generation = 1
	if stored != nil {
		next.UID, next.Status = stored.UID, stored.Status
		next.Generation = stored.Generation
		if w.weakness != specIsNoSign {
			next.Generation++
		}
	}
	next.ResourceVersion = strconv.Itoa(w.version)
	w.objects[slot] = next
	w.watched(slot)
	return true
}

// object is what a process writes.
func (w *world) object(i int, claim addonsv1.ScopeClaim) *addonsv1.ProviderInstance {
	slot := w.setup.processes[i]
	pi := &addonsv1.ProviderInstance{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: strconv.Itoa(slot)},
		Spec:       w.setup.objects[slot],
	}
	pi.Spec.Holder, pi.Spec.Claim, pi.Spec.ExpirySeconds = w.holder(i), claim, expirySeconds
	return pi
}

func (w *world) holder(i int) string { return fmt.Sprintf("%d-%d", i, w.processes[i].incarnation) }

func (w *world) observer(replica int) *Observer {
	sightings := maps.Clone(w.observers[replica])
	if sightings == nil {
		sightings = map[types.UID]sighting{}
	}
	return &Observer{clock: clockAt(w.now), sightings: sightings}
}

func clockAt(second int) *testclock.FakePassiveClock {
	return testclock.NewFakePassiveClock(time.Unix(int64(second), 0))
}

// versionOf returns 0 for an object that isn't there.
func versionOf(pi *addonsv1.ProviderInstance) int {
	if pi == nil {
		return 0
	}
	version, _ := strconv.Atoi(pi.ResourceVersion)
	return version
}
