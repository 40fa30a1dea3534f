// SPDX-License-Identifier: Apache-2.0

package decide_test

import (
	"math/rand/v2"
	"testing"

	"github.com/cluster-chandler/chandler/controllers/clusteraddon/decide"
)

// changing is an installed add-on with a change that nothing holds.
func changing(change func(*decide.Wanted)) decide.Wanted {
	w := decide.Wanted{Comparison: decide.Different, Installed: true, Precondition: decide.True}
	change(&w)
	return w
}

// Each rule of docs/concepts.md and docs/addon-upgrades.md about an add-on that a cluster is to have is a row.
func TestWanted(t *testing.T) {
	for name, tc := range map[string]struct {
		facts decide.Wanted
		want  decide.WantedStep
	}{
		"nothing is known yet":                                  {decide.Wanted{}, decide.Compare},
		"no change, no work":                                    {decide.Wanted{Comparison: decide.Same, Installed: true}, decide.Settle},
		"an installed add-on keeps its own check":               {decide.Wanted{Comparison: decide.Same, Installed: true, Postcondition: decide.False}, decide.AwaitPostcondition},
		"its check is true":                                     {decide.Wanted{Comparison: decide.Same, Installed: true, Postcondition: decide.True}, decide.Settle},
		"a removal beside it holds no add-on that is as wanted": {decide.Wanted{Comparison: decide.Same, Installed: true, RemovalHeld: true, DependencyMissing: true, HeldBack: true}, decide.Settle},
		"the cluster doesn't answer any more":                   {changing(func(w *decide.Wanted) { w.Unreachable = true }), decide.KeepWanted},
		"the assignment doesn't follow yet":                     {changing(func(w *decide.Wanted) { w.Outdated = true }), decide.KeepWanted},
		"another stack has the release":                         {changing(func(w *decide.Wanted) { w.Taken = true }), decide.RefuseTaken},
		"the instance requires a ServiceAccount":                {decide.Wanted{LacksAccount: true}, decide.RefuseAccount},
		"no version is for this Kubernetes":                     {decide.Wanted{Incompatible: true, Installed: true}, decide.RefuseVersion},
		"a source is down: nothing is changed or removed":       {decide.Wanted{Comparison: decide.Unreadable, Installed: true}, decide.ReportUnreadable},
		"a source is down before the first installation":        {decide.Wanted{Comparison: decide.Unreadable}, decide.ReportUnreadable},
		"an upgrade that nothing holds":                         {changing(func(*decide.Wanted) {}), decide.Deliver},
		"an installation that nothing holds":                    {changing(func(w *decide.Wanted) { w.Installed = false }), decide.Deliver},
		"an upgrade of Kubernetes comes first":                  {changing(func(w *decide.Wanted) { w.HeldBack, w.DependencyMissing = true, true }), decide.AwaitUpgrade},
		"its stack is paused":                                   {changing(func(w *decide.Wanted) { w.Paused = true }), decide.AwaitResume},
		"its stack is paused before it is installed":            {changing(func(w *decide.Wanted) { w.Paused, w.Installed = true, false }), decide.AwaitResume},
		"its stack is paused, and it is as wanted":              {decide.Wanted{Comparison: decide.Same, Installed: true, Paused: true}, decide.Settle},
		"its stack is paused, and its values were replaced":     {changing(func(w *decide.Wanted) { w.Paused, w.Comparison = true, decide.Replaced }), decide.AwaitResume},
		"nobody asks for the precondition in a pause":           {changing(func(w *decide.Wanted) { w.Paused, w.Precondition = true, decide.NotChecked }), decide.AwaitResume},
		"an add-on may come in the place of one that is held":   {changing(func(w *decide.Wanted) { w.Installed, w.RemovalHeld = false, true }), decide.AwaitConfirmation},
		"an installed one continues beside a held removal":      {changing(func(w *decide.Wanted) { w.RemovalHeld = true }), decide.Deliver},
		"a change waits for dependsOn":                          {changing(func(w *decide.Wanted) { w.DependencyMissing = true }), decide.AwaitDependency},
		"nobody asks for the precondition before that":          {changing(func(w *decide.Wanted) { w.DependencyMissing, w.Precondition = true, decide.NotChecked }), decide.AwaitDependency},
		"the precondition is asked for last":                    {changing(func(w *decide.Wanted) { w.Precondition = decide.NotChecked }), decide.CheckPrecondition},
		"the precondition isn't true":                           {changing(func(w *decide.Wanted) { w.Precondition = decide.False }), decide.AwaitPrecondition},
		"the precondition can't be evaluated":                   {changing(func(w *decide.Wanted) { w.Precondition = decide.Failed }), decide.RetryPrecondition},
		"something deletes its records":                         {changing(func(w *decide.Wanted) { w.Installed, w.RecordLost = false, true }), decide.AwaitRecord},
		"an upgrade is no installation":                         {changing(func(w *decide.Wanted) { w.RecordLost = true }), decide.Deliver},
		"replaced values, and the add-on has the pinned ones":   {changing(func(w *decide.Wanted) { w.Comparison, w.AsWanted = decide.Replaced, true }), decide.KeepReplaced},
		"replaced values of an add-on that isn't installed":     {changing(func(w *decide.Wanted) { w.Comparison, w.Installed = decide.Replaced, false }), decide.ReportReplaced},
		"a rollback takes the values of an earlier record":      {changing(func(w *decide.Wanted) { w.Comparison = decide.Replaced }), decide.GoBack},
		"a rollback waits for dependsOn":                        {changing(func(w *decide.Wanted) { w.Comparison, w.DependencyMissing = decide.Replaced, true }), decide.AwaitDependency},
		"a rollback waits for an upgrade of Kubernetes":         {changing(func(w *decide.Wanted) { w.Comparison, w.HeldBack = decide.Replaced, true }), decide.AwaitUpgrade},
		"a rollback waits for the precondition":                 {changing(func(w *decide.Wanted) { w.Comparison, w.Precondition = decide.Replaced, decide.NotChecked }), decide.CheckPrecondition},
	} {
		if got := tc.facts.Step(); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

// Whatever the facts are, a cluster is changed only by an add-on that nothing holds, and each question ends.
func TestWantedIsSafe(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 29))
	flip := func() bool { return random.IntN(2) == 0 }
	for range 100_000 {
		w := decide.Wanted{
			Unreachable: flip(), Outdated: flip(), Taken: flip(), LacksAccount: flip(), Incompatible: flip(), Installed: flip(), AsWanted: flip(), Paused: flip(),
			HeldBack: flip(), RemovalHeld: flip(), DependencyMissing: flip(), RecordLost: flip(),
			Comparison: decide.Comparison(random.IntN(5)), Postcondition: decide.Check(random.IntN(4)), Precondition: decide.Check(random.IntN(4)),
		}
		switch step := w.Step(); step {
		case decide.Deliver, decide.GoBack:
			if w.Paused || w.Unreachable || w.Outdated || w.Taken || w.LacksAccount || w.Incompatible || w.HeldBack || w.DependencyMissing || w.Precondition != decide.True ||
				step == decide.Deliver && w.Comparison != decide.Different || step == decide.GoBack && (w.Comparison != decide.Replaced || !w.Installed) ||
				!w.Installed && (w.RemovalHeld || w.RecordLost) {
				t.Fatalf("%s of %+v", step, w)
			}
		case decide.Compare:
			if w.Comparison = decide.Comparison(1 + random.IntN(4)); w.Step() == decide.Compare {
				t.Fatalf("it is asked for once more: %+v", w)
			}
		case decide.CheckPrecondition:
			if w.Precondition = decide.Check(1 + random.IntN(3)); w.Step() == decide.CheckPrecondition {
				t.Fatalf("it is asked for once more: %+v", w)
			}
		}
	}
}

// An add-on that no stack wants is removed only by a ClusterAddon that has run it, and while no stack may still want it.
func TestUnwanted(t *testing.T) {
	for name, tc := range map[string]struct {
		facts decide.Unwanted
		want  decide.Fate
	}{
		"its stack is gone":                                {decide.Unwanted{Ran: true}, decide.Leaves},
		"its stack has it no more":                         {decide.Unwanted{Ran: true, Assigned: true}, decide.Leaves},
		"its removal has begun":                            {decide.Unwanted{Ran: true, Removing: true, Stack: decide.Undecided}, decide.Leaves},
		"a record says that its removal has begun":         {decide.Unwanted{Removing: true}, decide.Unknown},
		"a new ClusterAddon finds it":                      {decide.Unwanted{}, decide.Unknown},
		"a new ClusterAddon finds its stack undecided":     {decide.Unwanted{Stack: decide.Undecided}, decide.Unknown},
		"a new ClusterAddon, and another stack is awaited": {decide.Unwanted{OtherAwaited: true}, decide.Unknown},
		"its stack is undecided":                           {decide.Unwanted{Ran: true, Stack: decide.Undecided}, decide.StackUndecided},
		"its stack is another instance's":                  {decide.Unwanted{Ran: true, Stack: decide.Foreign}, decide.StackUndecided},
		"its stack is undecided for a moment":              {decide.Unwanted{Ran: true, Stack: decide.Undecided, Passing: true}, decide.KeepsStatus},
		"its stack was there a moment ago":                 {decide.Unwanted{Ran: true, Stack: decide.JustGone, Passing: true}, decide.KeepsStatus},
		"the removal of its stack is held":                 {decide.Unwanted{Ran: true, Stack: decide.Held}, decide.KeepsStatus},
		"another stack may want it":                        {decide.Unwanted{Ran: true, OtherAwaited: true}, decide.SuccessorUndecided},
		"another stack may want it, for a moment":          {decide.Unwanted{Ran: true, OtherAwaited: true, Passing: true}, decide.KeepsStatus},
		"its own stack says that it doesn't want it":       {decide.Unwanted{Ran: true, OtherAwaited: true, Assigned: true}, decide.Leaves},
		"another management cluster has it":                {decide.Unwanted{TakenOver: true}, decide.TakenOver},
		"another management cluster took it over":          {decide.Unwanted{Ran: true, TakenOver: true}, decide.TakenOver},
		"its removal waits for confirmation":               {decide.Unwanted{Ran: true, RemovalHeld: true}, decide.KeepsStatus},
		"a removal that has begun isn't held":              {decide.Unwanted{Ran: true, RemovalHeld: true, Removing: true}, decide.Leaves},
		"its stack is paused":                              {decide.Unwanted{Ran: true, Paused: true, Assigned: true}, decide.StackPaused},
		"its stack is paused, and its removal has begun":   {decide.Unwanted{Ran: true, Paused: true, Removing: true}, decide.StackPaused},
		"its paused stack was there a moment ago":          {decide.Unwanted{Ran: true, Paused: true, Removing: true, Stack: decide.JustGone}, decide.KeepsStatus},
		"its removal waits in a paused stack":              {decide.Unwanted{Ran: true, Paused: true, RemovalHeld: true}, decide.KeepsStatus},
		"nobody may remove it without a ServiceAccount":    {decide.Unwanted{Ran: true, LacksAccount: true}, decide.WithoutAccount},
	} {
		if got := tc.facts.Fate(); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

// What a ClusterAddon didn't run never leaves, nor does what a stack may still want.
func TestUnwantedIsSafe(t *testing.T) {
	random := rand.New(rand.NewPCG(2, 29))
	flip := func() bool { return random.IntN(2) == 0 }
	for range 100_000 {
		u := decide.Unwanted{
			Ran: flip(), Removing: flip(), Stack: decide.StackState(random.IntN(7)), Assigned: flip(), OtherAwaited: flip(), Passing: flip(),
			TakenOver: flip(), Paused: flip(), RemovalHeld: flip(), LacksAccount: flip(),
		}
		mayBeWanted := u.Stack != decide.Known || u.OtherAwaited && !u.Assigned || u.TakenOver || u.RemovalHeld
		if u.Fate() == decide.Leaves && (!u.Ran || u.Paused || u.LacksAccount || mayBeWanted && !u.Removing) {
			t.Fatalf("%+v leaves", u)
		}
	}
}

// An add-on that is to be removed waits for whoever needs it, or has to have its objects.
func TestLeaving(t *testing.T) {
	for name, tc := range map[string]struct {
		facts decide.Leaving
		want  decide.LeavingStep
	}{
		"nothing holds it":                              {decide.Leaving{Successor: decide.No}, decide.Remove},
		"nobody has asked who takes its objects":        {decide.Leaving{}, decide.FindSuccessors},
		"an upgrade of Kubernetes comes first":          {decide.Leaving{UpgradeHolds: true}, decide.StayForUpgrade},
		"a stack may want its objects":                  {decide.Leaving{StackAwaited: true}, decide.AwaitStack},
		"another add-on may take its objects":           {decide.Leaving{Successor: decide.Yes}, decide.AwaitSuccessor},
		"one that depends on it leaves, too":            {decide.Leaving{DependentLeaves: true, StackAwaited: true}, decide.AwaitDependent},
		"one that depends on it stays":                  {decide.Leaving{DependentStays: true, StackAwaited: true}, decide.StayForDependent},
		"the cluster isn't asked while it waits anyway": {decide.Leaving{UpgradeHolds: true, DependentLeaves: true, StackAwaited: true}, decide.StayForUpgrade},
	} {
		if got := tc.facts.Step(); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

// What is known of a stack says what becomes of its releases, of those of other stacks, and of its status.
func TestStackStates(t *testing.T) {
	for state, want := range map[decide.StackState][4]bool{
		decide.Known:      {false, false, false, false},
		decide.Undecided:  {true, true, true, false},
		decide.Unseen:     {false, true, true, false},
		decide.Foreign:    {false, false, false, false},
		decide.JustGone:   {true, true, true, true},
		decide.Held:       {true, false, true, true},
		decide.Deselected: {true, false, false, true},
	} {
		if got := [4]bool{state.KeepsReleases(), state.IsAwaited(), state.MayTakeOver(), state.KeepsStatus()}; got != want {
			t.Errorf("%d: %v, want %v", state, got, want)
		}
	}
}
