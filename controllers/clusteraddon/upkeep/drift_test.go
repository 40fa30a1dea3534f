// SPDX-License-Identifier: Apache-2.0

package upkeep_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/releases"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/result"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/upkeep"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/wanted"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/deliver/repair"
	"github.com/cluster-chandler/chandler/internal/drift"
	"github.com/cluster-chandler/chandler/internal/fleetwatch"
	"github.com/cluster-chandler/chandler/test/addons"
)

// repairOf returns what repairs an add-on of a cluster.
func repairOf(c *addons.Cluster, a *wanted.Addon, known *upkeep.DriftMemory) upkeep.Repair {
	return upkeep.Repair{
		Deliverer: c.Deliverer, Watched: c.Watched, Workload: c.Workload, Addon: a, Memory: known, Limiter: c.Memory.Repairs, Proofs: c.Proofs, Again: c.Again, Now: c.Now,
	}
}

func TestDriftStatus(t *testing.T) {
	isFought := func(deliver.ObjectKey) bool { return false }
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
			is := upkeep.DriftStatus(tc.was, tc.found, isFought, "chandler/ns/web", now)
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
			again := upkeep.DriftStatus(is, tc.found, isFought, "chandler/ns/web", now.Add(time.Hour))
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
		got := ""
		if e := upkeep.DriftEvent(addonsv1.AddonStatus{Name: "web", Namespace: "ns", Stack: "platform", Drift: tc.is}, tc.was, tc.found); e != nil {
			got = e.Kind + " " + e.Reason
		}
		if got != tc.want {
			t.Errorf("%s: told of %q", title, got)
		}
	}
}

// Somebody who changes an object once doesn't fight for it.
func TestFightTakesSeveralRepairs(t *testing.T) {
	m, now := &upkeep.DriftMemory{}, time.Now()
	d := repair.Difference{Object: deliver.ObjectKey{Kind: "ConfigMap", Namespace: "ns", Name: "web"}, Gone: true, Repaired: true}
	if m.IsFought(d.Object) {
		t.Error("nobody has changed it")
	}
	if m.Note(now, []repair.Difference{d}); m.IsFought(d.Object) {
		t.Error("it was changed once")
	}
	for range 9 {
		m.Note(now, []repair.Difference{d})
	}
	if !m.IsFought(d.Object) {
		t.Error("it was changed ten times within a moment")
	}
}

func TestUnwatchedKinds(t *testing.T) {
	kinds := map[schema.GroupKind]error{{Kind: "Secret"}: errors.New("forbidden"), {Group: "apps", Kind: "Deployment"}: errors.New("gone")}
	is := upkeep.WithUnwatched(nil, kinds)
	if is == nil || !strings.Contains(is.Unwatched, "Deployment.apps (gone); Secret (forbidden)") {
		t.Errorf("%+v", is)
	}
	if is = upkeep.WithUnwatched(is, nil); is.Unwatched != "" {
		t.Errorf("%+v: they can be watched by now", is)
	}
	if upkeep.WithUnwatched(nil, nil) != nil {
		t.Error("a status of nothing")
	}
}

// Nothing is compared by a record that isn't proven, and it isn't tried again and again.
func TestUnprovenRecordIsNotCompared(t *testing.T) {
	for _, isProven := range []bool{true, false} {
		record := addons.Installed("platform", "web")
		record.Owned = true
		c := addons.Given(t, record)
		c.Again = true
		if !isProven {
			c.Proofs = &releases.Proofs{}
		}
		a := addons.Wanted("platform", "web")
		a.Namespace = "apps"
		one := result.Addon{Status: releases.Status(record, addonsv1.AddonReady)}
		_, _ = repairOf(c, &a, &upkeep.DriftMemory{}).Correct(t.Context(), record, &one)
		if (*c.Requests > 0) != isProven || !isProven && one.RetryAfter != 0 {
			t.Errorf("proven %t: asked %d times, again after %s", isProven, *c.Requests, one.RetryAfter)
		}
	}
}

// An add-on's objects are watched by what its own stack says of drift, once that stack has the release.
func TestFollowed(t *testing.T) {
	record := addons.Installed("platform", "web")
	for name, tc := range map[string]struct {
		stack  string
		change func(*wanted.Addon)
		want   bool
	}{
		"it is installed":         {"platform", func(*wanted.Addon) {}, true},
		"another stack's":         {"other", func(*wanted.Addon) {}, false},
		"the stack is outdated":   {"platform", func(a *wanted.Addon) { a.Outdated = true }, false},
		"its drift is of no note": {"platform", func(a *wanted.Addon) { a.Drift = &addonsv1.Drift{Policy: addonsv1.DriftPolicyIgnore} }, false},
	} {
		a := addons.Wanted(tc.stack, "web")
		a.Namespace = "apps"
		tc.change(&a)
		if _, followed := upkeep.Expected([]wanted.Addon{a}, addons.Records(record))[record.Release]; followed != tc.want {
			t.Errorf("%s: %t", name, followed)
		}
	}
}

// Objects of kinds that can't be watched are compared though no event came. They aren't compared again at once, but if the add-on has
// another revision.
func TestObjectsAreComparedWithoutEvents(t *testing.T) {
	now := time.Now()
	unwatched := fleetwatch.State{Unwatched: map[schema.GroupKind]error{{Kind: "Secret"}: errors.New("forbidden")}}
	m := &upkeep.DriftMemory{}
	if m.TurnTo(1); m.IsDue(now, fleetwatch.State{}) || !m.IsDue(now, unwatched) {
		t.Error("what can't be watched is compared, and nothing else")
	}
	if m.LookAt(now.Add(time.Minute)); m.IsDue(now, unwatched) || !m.IsDue(now.Add(time.Minute), fleetwatch.State{}) {
		t.Error("it is compared when the time has come")
	}
	if m.TurnTo(2); !m.IsDue(now, unwatched) {
		t.Error("it is of another revision")
	}
}

// A cluster that answers with errors isn't asked all the time, however long ago its objects were to be compared.
func TestRepairsThatFailAreNotTriedAllTheTime(t *testing.T) {
	record := addons.Installed("platform", "web")
	record.Applied = "none"
	a := &wanted.Addon{Addon: addonsv1.Addon{Name: "web", Namespace: "apps"}}
	c, memory := addons.Given(t, record), &upkeep.DriftMemory{}
	memory.TurnTo(1)
	memory.LookAt(c.Now.Add(-time.Hour))
	one := result.Addon{Status: a.Status()}
	one.Status.Revision = 1
	if _, err := repairOf(c, a, memory).Correct(t.Context(), record, &one); err == nil || one.RetryAfter < time.Second {
		t.Errorf("it comes again after %s: %v", one.RetryAfter, err)
	}
}

// A record of an older version doesn't say what was applied: its objects are compared, to note that.
func TestRecordsWithoutWhatWasAppliedAreLookedAt(t *testing.T) {
	for applied, looks := range map[string]bool{"none": false, "": true} {
		record := addons.Installed("platform", "web")
		record.Applied = applied
		c := addons.Given(t, record)
		a := &wanted.Addon{Addon: addonsv1.Addon{Name: "web", Namespace: "apps"}, Stack: "platform"}
		one := result.Addon{Status: a.Status()}
		one.Status.Revision = 1
		_, _ = repairOf(c, a, &upkeep.DriftMemory{}).Correct(t.Context(), record, &one)
		if (*c.Requests > 0) != looks {
			t.Errorf("applied %q: the cluster is asked %d times", applied, *c.Requests)
		}
	}
}
