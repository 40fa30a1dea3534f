// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strconv"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/rollout"
	"github.com/cluster-chandler/chandler/test/long"
)

// fleet is a fleet as it really is, and as a cache that is behind shows it.
type fleet struct {
	*rand.Rand
	t         *testing.T
	seed      uint64
	now       time.Time
	rollout   *addonsv1.Rollout           // spec.rollout
	revisions []appsv1.ControllerRevision // the newest first
	clusters  map[string]*cluster
	shown     map[string]cluster
	turns     map[string]string // by cluster: given, and maybe not written yet
	bad       map[string]sets.Set[string]
	paused    bool
	target    string
	made      int
	calm      bool // nothing fails by itself, and the cache follows

	// What the test remembers of each attempt, by revision and number: which waves held, and which were approved.
	held, approved map[string]sets.Set[string]
}

type cluster struct {
	rollout.Cluster
	is  addonsv1.StackStatus
	had sets.Set[string] // revisions that it was ready at: its records have them
}

func newFleet(t *testing.T, seed uint64) *fleet {
	f := &fleet{
		t: t, seed: seed, Rand: rand.New(rand.NewPCG(seed, 1)), now: time.Unix(1e9, 0).UTC(), clusters: map[string]*cluster{}, shown: map[string]cluster{},
		turns: map[string]string{}, bad: map[string]sets.Set[string]{}, held: map[string]sets.Set[string]{}, approved: map[string]sets.Set[string]{},
	}
	f.plan()
	if f.IntN(3) == 0 {
		f.rollout = nil
	}
	f.edit(false)
	for range 2 + f.IntN(20) {
		f.join()
	}
	return f
}

// plan writes another spec.rollout.
func (f *fleet) plan() {
	duration := func(hours int) *metav1.Duration {
		return &metav1.Duration{Duration: time.Duration(hours) * time.Hour}
	}
	size, third := intstr.FromInt32(int32(1+f.IntN(3))), intstr.FromString("30%")
	approval := []addonsv1.RolloutApproval{addonsv1.RolloutApprovalNone, addonsv1.RolloutApprovalNone, addonsv1.RolloutApprovalRequired}[f.IntN(3)]
	f.rollout = &addonsv1.Rollout{
		Waves: []addonsv1.RolloutWave{
			{Name: "canary", ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"stage": "canary"}}, MaxConcurrent: ptr.To(intstr.FromInt32(1)), Soak: duration(f.IntN(3)), Optional: f.IntN(4) > 0},
			{Name: "few", Size: &size, MaxConcurrent: &third, Soak: duration(f.IntN(2)), Approval: approval},
		},
		MaxConcurrent: ptr.To(intstr.FromString([]string{"10%", "50%", "100%"}[f.IntN(3)])),
		MaxFailed:     &[]intstr.IntOrString{intstr.FromInt32(0), intstr.FromInt32(1), intstr.FromString("20%")}[f.IntN(3)],
		MinReady:      &metav1.Duration{Duration: time.Duration(f.IntN(3)) * 10 * time.Minute},
		OnFailure:     []addonsv1.RolloutFailurePolicy{addonsv1.RolloutHalt, addonsv1.RolloutRollBack}[f.IntN(2)],
	}
	if f.IntN(5) == 0 {
		f.rollout.Waves = nil
	}
}

func (f *fleet) names() []string { return slices.Sorted(maps.Keys(f.clusters)) }

// edit makes a revision, as the AddonStack controller does.
func (f *fleet) edit(followed bool) {
	f.made++
	r := appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("r", f.made)}}
	f.bad[r.Name] = sets.New[string]()
	if f.IntN(3) == 0 {
		for _, c := range f.names() {
			if f.IntN(2) == 0 {
				f.bad[r.Name].Insert(c)
			}
		}
	}
	rollout.Renew(f.revisions, &r, int64(f.made), !followed, f.rollout != nil)
	f.revisions = slices.Insert(f.revisions, 0, r)
}

// revert makes an old revision the newest one.
func (f *fleet) revert() {
	at := f.IntN(len(f.revisions))
	if at == 0 {
		return
	}
	f.made++
	marked, before := rollout.Revisions(f.revisions), f.key(f.revisions[at].Name)
	isTarget := rollout.Target(marked) == at && !marked[at].Rejected && marked[at].Cause != ""
	r := f.revisions[at].DeepCopy()
	rollout.Renew(f.revisions, r, int64(f.made), f.IntN(4) > 0, f.rollout != nil)
	f.revisions = slices.Insert(slices.Delete(f.revisions, at, at+1), 0, *r)
	if isTarget { // the same attempt
		f.held[f.key(r.Name)], f.approved[f.key(r.Name)] = f.held[before], f.approved[before]
	}
	if f.IntN(3) == 0 { // it was good then, and isn't any more
		f.bad[r.Name] = sets.New(f.names()...)
	}
}

// replaceInputs changes values in place: all revisions so far are of the previous ones, and another one follows.
func (f *fleet) replaceInputs() {
	for i := range f.revisions {
		metav1.SetMetaDataAnnotation(&f.revisions[i].ObjectMeta, addonsv1.RolloutInputsReplacedAnnotation, "Secret/x")
	}
	f.edit(true)
}

// restoreInputs puts the values back that a revision was made with.
func (f *fleet) restoreInputs() {
	delete(f.revisions[f.IntN(len(f.revisions))].Annotations, addonsv1.RolloutInputsReplacedAnnotation)
}

// join adds a cluster, with the revision that assignment gives to one that joins.
func (f *fleet) join() {
	f.made++
	c := &cluster{Cluster: rollout.Cluster{Name: fmt.Sprint("c", f.made), Joined: f.now, Labels: labels.Set{}, WasReady: true}}
	if f.IntN(6) == 0 {
		c.Labels["stage"] = "canary"
	}
	marked := rollout.Revisions(f.revisions)
	entry := rollout.Entry(marked, rollout.Target(marked))
	if (entry < 0 || marked[entry].Replaced) && f.IntN(2) == 0 {
		entry = rollout.Target(marked)
	}
	if entry >= 0 && !marked[entry].Replaced && !marked[entry].Rejected {
		c.Assigned = marked[entry].Name
	}
	f.clusters[c.Name] = c
}

func (f *fleet) find(revision string) int {
	return slices.IndexFunc(f.revisions, func(r appsv1.ControllerRevision) bool { return r.Name == revision })
}

func (f *fleet) isReplaced(revision string) bool {
	at := f.find(revision)
	return at >= 0 && rollout.Revisions(f.revisions)[at].Replaced
}

// isDue reports whether a turn is still to the target, or from it: assignment looks at the revisions as they are.
func (f *fleet) isDue(c *cluster, turn string) bool {
	marked := rollout.Revisions(f.revisions)
	target := rollout.Target(marked)
	if target >= 0 && marked[target].Rejected {
		return c.Assigned == marked[target].Name
	}
	return target >= 0 && marked[target].Name == turn
}

// live lets the clusters do their work.
func (f *fleet) live() {
	for _, name := range f.names() {
		c := f.clusters[name]
		if turn, given := f.turns[name]; given && c.Away == "" && c.Assigned != turn && f.isDue(c, turn) && f.IntN(2) == 0 {
			c.Assigned = turn
		}
		isBad := f.bad[c.Assigned].Has(name) || !c.had.Has(c.Assigned) && f.isReplaced(c.Assigned)
		if c.State == addonsv1.StackReady && c.is.Revision == c.Assigned {
			c.had = c.had.Union(sets.New(c.Assigned))
		}
		switch {
		case c.Away != "" || c.Assigned == "":
		case c.is.Revision != c.Assigned:
			before := addonsv1.StackStatus{Revision: c.is.Revision, State: c.State, Previous: c.is.Previous, WasReady: c.is.WasReady}
			c.is = addonsv1.StackStatus{Revision: c.Assigned}
			c.is.WasReady, c.is.Previous = rollout.Leave(before, c.Assigned)
			c.WasReady = ptr.Deref(c.is.WasReady, true)
			c.State, c.Since, c.Started = addonsv1.StackProgressing, f.now, f.now
		case c.State == addonsv1.StackProgressing && (f.calm || f.IntN(3) == 0):
			if c.State, c.Since = addonsv1.StackReady, f.now; isBad {
				c.State = addonsv1.StackFailed
			}
		case c.State == addonsv1.StackFailed && !isBad:
			c.State, c.Since = addonsv1.StackReady, f.now
		case c.State == addonsv1.StackReady && !f.calm && f.IntN(300) == 0:
			c.State, c.Since = addonsv1.StackFailed, f.now
		}
	}
	for _, name := range f.names() {
		if _, known := f.shown[name]; !known || f.calm || f.IntN(3) > 0 {
			f.shown[name] = *f.clusters[name]
		}
	}
}

// input is made of what the cache shows, as the controller makes it.
func (f *fleet) input() (in rollout.Input, target int) {
	marked := rollout.Revisions(f.revisions)
	if target = rollout.Target(marked); target < 0 {
		return rollout.Input{}, target
	}
	if marked[target].Cause == "" {
		rollout.Begin(&f.revisions[target], rollout.Edited, false)
		marked = rollout.Revisions(f.revisions)
	}
	in = rollout.Input{Now: f.now, Strategy: rollout.AtOnce()}
	if f.rollout != nil {
		staged := f.rollout.DeepCopy()
		if attempt := rollout.AttemptOf(&f.revisions[target]); !attempt.Started.IsZero() {
			staged.Waves = attempt.Waves
		}
		in.Strategy, _ = rollout.StrategyOf(staged, nil)
	}
	in.Aim(f.revisions, target, "")
	if f.paused {
		in.Stop.Phase = addonsv1.RolloutPaused
	}
	if in.Mode == rollout.Returning && in.Returned.IsZero() {
		in.Returned = f.now
	}
	unfinished := rollout.Unfinished(marked, target)
	for _, name := range slices.Sorted(maps.Keys(f.shown)) {
		shown := f.shown[name]
		c := shown.Cluster
		c.GoesBackTo = rollout.GoesBackTo(marked, target, shown.is)
		aim := in.Target
		if in.Mode == rollout.Returning {
			aim = c.GoesBackTo
		}
		switch turn, given := f.turns[name]; {
		case !given || c.Assigned == turn:
		case turn == aim && (in.Mode != rollout.Returning || c.Assigned == in.Target):
			c.Assigned = turn
		default:
			delete(f.turns, name) // a turn to another revision is taken back; the cache has shown whether it was taken until the next edit
			f.shown[name] = *f.clusters[name]
		}
		if shown.is.Revision != c.Assigned {
			c.Started = time.Time{}
			left := shown.is
			left.State = shown.State
			wasReady, _ := rollout.Leave(left, c.Assigned)
			c.WasReady = ptr.Deref(wasReady, true)
			if in.Mode == rollout.Returning || c.Assigned == in.Target {
				c.State = addonsv1.StackProgressing
			}
		}
		if in.Mode == rollout.Returning && c.Assigned == in.Target && c.GoesBackTo == "" && c.Away == "" {
			c.Away = "NothingToGoBackTo"
		}
		c.Unfinished = unfinished.Has(c.Assigned)
		in.Clusters = append(in.Clusters, c)
	}
	return in, target
}

func (f *fleet) decide() rollout.Decision {
	f.t.Helper()
	in, target := f.input()
	if target < 0 {
		return rollout.Decision{}
	}
	d := rollout.Decide(in)
	if again := rollout.Decide(in); !reflect.DeepEqual(d, again) {
		f.t.Fatalf("seed %d: the same input has another decision:\n%+v\n%+v", f.seed, d, again)
	}
	if f.rollout == nil { // all get the newest at once
		if f.unstaged(); target == 0 && d.Completed {
			rollout.Mark(&f.revisions[0], rollout.Decision{Completed: true}, nil, "", f.now)
		}
		return d
	}
	f.check(in, d)
	for _, name := range d.Start {
		f.turns[name] = in.Target
		if in.Mode == rollout.Returning {
			at := slices.IndexFunc(in.Clusters, func(c rollout.Cluster) bool { return c.Name == name })
			f.turns[name] = in.Clusters[at].GoesBackTo
		}
	}
	rollout.Mark(&f.revisions[target], d, rollout.WavesOf(f.rollout), "", f.now)
	return d
}

// unstaged gives the newest revision to all clusters.
func (f *fleet) unstaged() {
	if is := rollout.AttemptOf(&f.revisions[0]); !is.Unstaged || len(f.revisions[0].Annotations) > 2 {
		rollout.EndStages(&f.revisions[0])
	}
	f.turns = map[string]string{}
	if f.paused {
		return
	}
	for _, c := range f.clusters {
		if c.Away == "" && !f.isReplaced(f.revisions[0].Name) {
			c.Assigned = f.revisions[0].Name
		}
	}
}

// key names an attempt.
func (f *fleet) key(revision string) string {
	at := f.find(revision)
	return fmt.Sprint(revision, "/", f.revisions[at].Revision)
}

// check looks for decisions that may never be, by what the fleet really is, and by what the test remembers of this attempt.
func (f *fleet) check(in rollout.Input, d rollout.Decision) {
	f.t.Helper()
	fatal := func(invariant string) {
		f.t.Helper()
		f.t.Fatalf("seed %d: %s: mode %d, %+v\n%+v\n%+v", f.seed, invariant, in.Mode, d, in.Strategy, in.Clusters)
	}
	if !d.Next.IsZero() && !d.Next.After(in.Now) {
		fatal("WakesInThePast")
	}
	if f.paused && (len(d.Start) > 0 || d.Reject) {
		fatal("APausedStackStartsNothing")
	}
	marked := rollout.Revisions(f.revisions)
	if was, is := f.find(f.target), f.find(in.Target); was >= 0 && was < is && !marked[was].Rejected && !marked[was].Halted && !marked[was].Replaced && marked[was].Started {
		fatal("NoClusterGoesBackUnlessItsRevisionWasRejected")
	}
	for _, name := range d.Start {
		if at := f.find(f.shown[name].Assigned); in.Mode == rollout.Returning && (at < 0 || !marked[at].Rejected) && f.turns[name] == "" {
			fatal("NoClusterGoesBackUnlessItsRevisionWasRejected")
		}
	}
	f.target = in.Target
	key := f.key(in.Target)
	if f.held[key] == nil {
		f.held[key] = sets.New[string]()
	}
	staged := in.Mode == rollout.Staged
	for i, w := range d.Waves {
		soak := time.Duration(0)
		if staged {
			soak = in.Strategy.Waves[i].Soak
		}
		isEmptySelector := staged && in.Strategy.Waves[i].Selector != nil && !in.Strategy.Waves[i].Optional
		seen := len(d.Members[i]) == 0 && !isEmptySelector
		for _, m := range d.Members[i] {
			seen = seen || m.Assigned == in.Target && m.State == addonsv1.StackReady && !f.now.Before(m.Since.Add(max(in.Strategy.MinReady, soak)))
		}
		if seen {
			f.held[key].Insert(w.Name)
		}
	}
	if d.Reject && !slices.ContainsFunc(in.Clusters, func(c rollout.Cluster) bool { return c.Assigned == in.Target && c.GoesBackTo != "" }) {
		fatal("RejectsWithNothingToGoTo")
	}
	if len(d.Start) == 0 {
		return
	}
	if in.Mode != rollout.Returning && in.Target != f.revisions[0].Name && f.isReplaced(in.Target) {
		fatal("StartsWhatCannotBeHad")
	}
	if d.Phase == addonsv1.RolloutHalted {
		fatal("StartsWhileHalted")
	}
	last := 0 // the last wave that a cluster starts in
	for i := range d.Members {
		for _, m := range d.Members[i] {
			if slices.Contains(d.Start, m.Name) {
				last = i
				if m.Away != "" || m.Assigned == in.Target != (in.Mode == rollout.Returning) {
					fatal("StartsOneThatIsAwayOrThere")
				}
				if staged && in.Strategy.Waves[i].NeedsApproval && !in.Over.Has(d.Waves[i].Name) && !f.approved[key].HasAny(rollout.All, d.Waves[i].Name) {
					fatal("AnApprovalOpensOneWaveOfOneAttempt")
				}
			}
		}
	}
	for i := range last {
		if name := d.Waves[i].Name; staged && !f.held[key].Has(name) && !f.approved[key].HasAny(rollout.All, "promoted/"+name) && len(d.Members[i]) > 0 {
			fatal("NoSecondWaveBeforeTheFirstOneHeld")
		}
	}
	f.checkLimits(in, d, last, fatal)
}

// checkLimits looks at how many clusters failed, and how many are on their way.
func (f *fleet) checkLimits(in rollout.Input, d rollout.Decision, last int, fatal func(string)) {
	f.t.Helper()
	if in.Mode == rollout.Staged || in.Mode == rollout.SteppingBack {
		for i := range d.Members {
			unwell := 0
			for _, m := range d.Members[i] {
				c := f.shown[m.Name]
				if c.is.Revision == in.Target && m.Assigned == in.Target && c.State == addonsv1.StackFailed && c.WasReady {
					unwell++
				}
			}
			if unwell > rollout.AtMost(in.Strategy.MaxFailed, d.Waves[i].Total) {
				fatal("NoStartWhileMoreThanMaxFailedFailed")
			}
		}
	}
	running := 0
	for _, name := range f.names() {
		c := f.clusters[name]
		shown, known := f.shown[name]
		if !known || in.Mode == rollout.Returning || in.Mode == rollout.AllAtOnce {
			continue // it has just come, and got the revision of those that join; or all got it before there was a rollout
		}
		underWay := c.Assigned == in.Target || f.turns[name] == in.Target
		over := c.is.Revision == in.Target && c.State != addonsv1.StackProgressing || c.Away != "" || shown.Away != ""
		late := c.is.Revision == in.Target && !f.now.Before(c.Started.Add(in.Strategy.ReadyWithin))
		if underWay && !over && !late && !slices.Contains(d.Start, name) { // a cache that is behind has it started again
			running++
		}
	}
	steps := in.Strategy.Waves
	if in.Mode != rollout.Staged {
		steps = steps[len(steps)-1:]
	}
	most := 0
	for i := range last + 1 {
		most = max(most, atLeastOne(steps[i].MaxConcurrent, d.Waves[i].Total))
	}
	if running+len(d.Start) > most {
		fatal("MoreOnTheirWayThanMay")
	}
}

func atLeastOne(limit intstr.IntOrString, total int) int {
	n, _ := intstr.GetScaledValueFromIntOrPercent(&limit, total, true)
	return max(n, 1)
}

// annotate adds a wave to an annotation of the revision that clusters are brought to.
func (f *fleet) annotate(annotation, wave, as string) {
	marked := rollout.Revisions(f.revisions)
	target := rollout.Target(marked)
	if target < 0 || marked[target].Cause == "" {
		return
	}
	r := &f.revisions[target]
	names := rollout.Names(r.Annotations[annotation]).Insert(wave)
	list := ""
	for _, name := range sets.List(names) {
		list += name + ","
	}
	metav1.SetMetaDataAnnotation(&r.ObjectMeta, annotation, list)
	key := f.key(r.Name)
	if f.approved[key] == nil {
		f.approved[key] = sets.New[string]()
	}
	f.approved[key].Insert(as)
}

// disturb does one of the things that happen to fleets.
func (f *fleet) disturb() {
	names := f.names()
	some := f.clusters[names[f.IntN(len(names))]]
	target := max(0, rollout.Target(rollout.Revisions(f.revisions)))
	switch f.IntN(24) {
	case 0:
		f.join()
	case 1:
		if len(names) > 2 {
			delete(f.clusters, some.Name)
			delete(f.shown, some.Name)
			delete(f.turns, some.Name)
		}
	case 2:
		some.Labels = labels.Set{"stage": []string{"canary", "prod"}[f.IntN(2)]}
	case 3, 4:
		some.Away, some.Unreachable, some.AwaySince = "Unreachable", true, f.now
	case 5:
		some.Away, some.Unreachable, some.AwaySince = "Paused", false, f.now
	case 6, 7:
		some.Away, some.Unreachable = "", false
	case 8:
		if f.IntN(3) == 0 {
			f.edit(false)
		}
	case 9:
		f.edit(true)
	case 10: // the process is killed: turns that weren't written are lost, and the cache is new
		f.turns = map[string]string{}
		for name, c := range f.clusters {
			f.shown[name] = *c
		}
	case 11:
		f.annotate(addonsv1.RolloutApprovedAnnotation, "few", "few")
	case 12:
		if f.IntN(10) == 0 {
			f.revisions[f.IntN(min(2, len(f.revisions)))].Annotations[addonsv1.RolloutRejectedAnnotation] = "INC-4711"
		}
	case 13:
		if f.IntN(3) == 0 {
			f.replaceInputs()
		}
	case 14:
		f.restoreInputs()
	case 15:
		f.revert()
	case 16: // spec.rollout goes, and comes
		if f.rollout == nil {
			f.plan()
		} else if f.IntN(4) == 0 {
			f.rollout = nil
		}
	case 17: // another spec.rollout in the middle of an attempt
		if f.rollout != nil {
			f.plan()
		}
	case 18:
		f.paused = !f.paused && f.IntN(2) == 0
	case 19: // resumed
		delete(f.revisions[target].Annotations, addonsv1.RolloutHaltedAnnotation)
	case 20: // tried again: another attempt
		if r := &f.revisions[target]; r.Annotations[addonsv1.RolloutRejectedAnnotation] != "" {
			delete(r.Annotations, addonsv1.RolloutRejectedAnnotation)
			if rollout.AttemptOf(r).Cause == "" {
				delete(f.held, f.key(r.Name))
				delete(f.approved, f.key(r.Name))
			}
		}
	case 21:
		f.annotate(addonsv1.RolloutPromotedAnnotation, "canary", "promoted/canary")
	case 22: // marks of an older program
		r := &f.revisions[f.IntN(len(f.revisions))]
		if rollout.AttemptOf(r).Cause == "" || f.IntN(4) > 0 {
			return
		}
		delete(r.Annotations, addonsv1.RolloutAttemptAnnotation)
		for _, old := range []string{"started", "completed", "approved", "rejected"} {
			metav1.SetMetaDataAnnotation(&r.ObjectMeta, "addons.cluster.x-k8s.io/rollout-"+old, "few")
		}
		delete(f.held, f.key(r.Name))
		delete(f.approved, f.key(r.Name))
	case 23:
		if f.IntN(5) == 0 {
			f.annotate(addonsv1.RolloutApprovedAnnotation, rollout.All, rollout.All)
		}
	}
}

// TestRandomHistories has fleets live through random events, with decisions in between.
func TestRandomHistories(t *testing.T) {
	long.InCI(t)
	histories := uint64(500)
	if n, err := strconv.ParseUint(os.Getenv("CHANDLER_ROLLOUT_HISTORIES"), 10, 64); err == nil {
		histories = n
	}
	phases, starts := map[addonsv1.RolloutPhase]int{}, 0
	for seed := range histories {
		f := newFleet(t, seed)
		for range 60 {
			f.live()
			if f.IntN(3) == 0 {
				f.disturb()
			}
			d := f.decide()
			phases[d.Phase]++
			starts += len(d.Start)
			f.now = f.now.Add(time.Duration(1+f.IntN(600)) * time.Second)
			if !d.Next.IsZero() && f.IntN(4) == 0 {
				f.now = d.Next
			}
			f.now = f.now.Truncate(time.Second)
		}
		f.settle(seed)
	}
	t.Logf("%d histories, %d starts, phases %v", histories, starts, phases)
}

// settle lets a good edit come to its end: no cluster is left out for ever.
func (f *fleet) settle(seed uint64) {
	f.t.Helper()
	for _, c := range f.clusters {
		c.Away, c.Unreachable = "", false
	}
	f.calm, f.paused = true, false
	if f.rollout == nil {
		f.plan()
	}
	f.edit(false)
	f.bad[f.revisions[0].Name] = nil
	f.annotate(addonsv1.RolloutApprovedAnnotation, "few", "few")
	for i := range f.rollout.Waves {
		f.rollout.Waves[i].Optional = true
	}
	var d rollout.Decision
	for range 2000 {
		f.live()
		d = f.decide()
		arrived := d.Phase == addonsv1.RolloutCompleted && rollout.Target(rollout.Revisions(f.revisions)) == 0
		for _, c := range f.clusters {
			arrived = arrived && c.Assigned == f.revisions[0].Name && c.State == addonsv1.StackReady
		}
		if arrived {
			return
		}
		f.now = f.now.Add(5 * time.Minute)
	}
	in, _ := f.input()
	f.t.Fatalf("seed %d: a good revision doesn't come to its end: %+v\n%+v\n%+v", seed, d, f.revisions, in.Clusters)
}
