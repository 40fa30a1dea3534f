// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/wanted"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/deliver/repair"
	"github.com/cluster-chandler/chandler/internal/drift"
	"github.com/cluster-chandler/chandler/internal/fleetwatch"
	"github.com/cluster-chandler/chandler/test/addons"
)

func TestDriftStatus(t *testing.T) {
	now := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	key := func(name string) deliver.ObjectKey {
		return deliver.ObjectKey{Group: "apps", Kind: "Deployment", Namespace: "ns", Name: name}
	}
	replicas := []drift.Change{{Path: fieldpath.MakePathOrDie("spec", "replicas"), Managers: []string{"hpa"}}}
	changed := repair.Difference{Object: key("web"), Changes: replicas, Managers: []string{"hpa"}}
	fixed := changed
	fixed.Repaired = true
	gone := repair.Difference{Object: key("web"), Gone: true}
	ignored := repair.Difference{Object: key("web"), Applied: 1, Now: 2}
	refused := repair.Difference{Object: key("web"), Refused: "Deployment ns/web: no"}
	was := &addonsv1.AddonDrift{Repaired: 4, Message: "before", LastManagers: []string{"kubectl"}}
	for title, tc := range map[string]struct {
		was      *addonsv1.AddonDrift
		found    []repair.Difference
		objects  int32
		repaired int64
		message  string
		is       bool // there is a status at all
	}{
		"nothing ever":            {nil, nil, 0, 0, "", false},
		"nothing now":             {was, nil, 0, 4, "before", true},
		"a rule leaves it":        {nil, []repair.Difference{ignored}, 0, 0, "", false},
		"repaired":                {nil, []repair.Difference{fixed}, 0, 1, "Deployment ns/web has another .spec.replicas, by hpa; repaired", true},
		"repaired once more":      {was, []repair.Difference{fixed}, 0, 5, "repaired", true},
		"left":                    {was, []repair.Difference{changed, gone}, 2, 4, "was deleted", true},
		"left, and it is refused": {nil, []repair.Difference{refused}, 1, 0, "Deployment ns/web: ", true},
	} {
		t.Run(title, func(t *testing.T) {
			is := driftStatus(tc.was, tc.found, &driftMemory{}, "chandler/ns/web", now)
			if (is != nil) != tc.is {
				t.Fatalf("%+v", is)
			}
			if is == nil {
				return
			}
			if is.Objects != tc.objects || is.Repaired != tc.repaired || !strings.Contains(is.Message, tc.message) {
				t.Errorf("%+v", is)
			}
			// The same once more is no news, unless it was repaired.
			again := driftStatus(is, tc.found, &driftMemory{}, "chandler/ns/web", now.Add(time.Hour))
			if is.Repaired == again.Repaired && !again.LastTime.Equal(&is.LastTime) {
				t.Errorf("%+v, and then %+v", is, again)
			}
		})
	}
}

// A drift is told of once: again if it is another one, or was repaired again.
func TestDriftIsToldOnce(t *testing.T) {
	was := &addonsv1.AddonDrift{Repaired: 4, Message: "before"}
	left := []repair.Difference{{Object: deliver.ObjectKey{Kind: "ConfigMap", Namespace: "ns", Name: "web"}, Gone: true}}
	for title, tc := range map[string]struct {
		was, is *addonsv1.AddonDrift
		found   []repair.Difference
		want    string
	}{
		"none":           {nil, nil, nil, ""},
		"the first one":  {nil, was, left, "Warning DriftFound"},
		"the same":       {was, was.DeepCopy(), left, ""},
		"another one":    {was, &addonsv1.AddonDrift{Repaired: 4, Message: "now"}, left, "Warning DriftFound"},
		"repaired again": {was, &addonsv1.AddonDrift{Repaired: 5, Message: "before"}, nil, "Normal DriftRepaired"},
	} {
		recorder := events.NewFakeRecorder(1)
		r := &Reconciler{Recorder: recorder}
		q := driftRepair{record: func(e event) { r.record(&addonsv1.ClusterAddon{}, e) }}
		q.tell(&addonsv1.AddonStatus{Name: "web", Namespace: "ns", Stack: "platform", Drift: tc.is}, tc.was, tc.found)
		close(recorder.Events)
		if got := <-recorder.Events; !strings.HasPrefix(got, tc.want) || tc.want == "" && got != "" {
			t.Errorf("%s: told of %q", title, got)
		}
	}
}

// Somebody who changes an object once doesn't fight for it.
func TestFightTakesSeveralRepairs(t *testing.T) {
	m, now := newDriftMemory(), time.Now()
	d := repair.Difference{Object: deliver.ObjectKey{Kind: "ConfigMap", Namespace: "ns", Name: "web"}, Gone: true, Repaired: true}
	if m.isFought(d.Object) {
		t.Error("nobody has changed it")
	}
	if m.note(now, []repair.Difference{d}); m.isFought(d.Object) {
		t.Error("it was changed once")
	}
	for range 9 {
		m.note(now, []repair.Difference{d})
	}
	if !m.isFought(d.Object) {
		t.Error("it was changed ten times within a moment")
	}
}

func TestUnwatchedKinds(t *testing.T) {
	kinds := map[schema.GroupKind]error{{Kind: "Secret"}: errors.New("forbidden"), {Group: "apps", Kind: "Deployment"}: errors.New("gone")}
	is := withUnwatched(nil, kinds)
	if is == nil || !strings.Contains(is.Unwatched, "Deployment.apps (gone); Secret (forbidden)") {
		t.Errorf("%+v", is)
	}
	if is = withUnwatched(is, nil); is.Unwatched != "" {
		t.Errorf("%+v: they can be watched by now", is)
	}
	if withUnwatched(nil, nil) != nil {
		t.Error("a status of nothing")
	}
}

func TestRepairsOfOneClusterAreBounded(t *testing.T) {
	m, now, n := newMemory(), time.Now(), 0
	for range 1000 {
		if m.repairs.AllowN(now, 1) {
			n++
		}
		now = now.Add(10 * time.Millisecond)
	}
	if n < repairBurst || n > repairBurst+11*repairRate {
		t.Errorf("%d in ten seconds", n)
	}
}

// Objects are compared though no event came when their time has come. Those of kinds that can't be watched
// are at first, and when the add-on has another revision.
func TestObjectsAreComparedWithoutEvents(t *testing.T) {
	now := time.Now()
	unwatched := fleetwatch.State{Unwatched: map[schema.GroupKind]error{{Kind: "Secret"}: errors.New("forbidden")}}
	for title, tc := range map[string]struct {
		lookAt   time.Time
		state    fleetwatch.State
		revision int
		want     bool
	}{
		"all are watched":             {time.Time{}, fleetwatch.State{}, 1, false},
		"some can't be watched":       {time.Time{}, unwatched, 1, true},
		"they were looked at":         {now.Add(time.Minute), unwatched, 1, false},
		"of another revision":         {now.Add(time.Minute), unwatched, 2, true},
		"a change is left for a time": {now.Add(time.Second), fleetwatch.State{}, 1, false},
		"the time is over":            {now, fleetwatch.State{}, 1, true},
	} {
		m := newDriftMemory()
		m.revision, m.lookAt = 1, tc.lookAt
		m.turnTo(tc.revision)
		if got := m.isDue(now, tc.state); got != tc.want {
			t.Errorf("%s: due is %t", title, got)
		}
	}
}

// A cluster that answers with errors isn't asked all the time, however long ago its objects were to be compared.
func TestRepairsThatFailAreNotTriedAllTheTime(t *testing.T) {
	record := addons.Installed("platform", "web")
	record.Applied = "none"
	a := &wanted.Addon{Addon: addonsv1.Addon{Name: "web", Namespace: "apps"}}
	q, _ := askedCluster(t, record)
	q.watched = fleetwatch.NewObjects(func(multicluster.ClusterName) {})
	memory := &q.memory.of(a.Release()).drift
	memory.revision, memory.lookAt = 1, q.now.Add(-time.Hour)
	one := addonResult{status: a.Status()}
	one.status.Revision = 1
	if q.repairs(a).correct(t.Context(), record, &one); one.requestErr == nil || one.retryAfter < time.Second {
		t.Errorf("it comes again after %s: %v", one.retryAfter, one.requestErr)
	}
}

// A record of an older version doesn't say what was applied: its objects are compared, to note that.
func TestRecordsWithoutWhatWasAppliedAreLookedAt(t *testing.T) {
	for applied, looks := range map[string]bool{"none": false, "": true} {
		record := addons.Installed("platform", "web")
		record.Applied = applied
		q, asked := askedCluster(t, record)
		q.watched = fleetwatch.NewObjects(func(multicluster.ClusterName) {})
		a := &wanted.Addon{Addon: addonsv1.Addon{Name: "web", Namespace: "apps"}, Stack: "platform"}
		one := addonResult{status: a.Status()}
		one.status.Revision = 1
		q.repairs(a).correct(t.Context(), record, &one)
		if (*asked > 0) != looks {
			t.Errorf("applied %q: the cluster is asked %d times", applied, *asked)
		}
	}
}
