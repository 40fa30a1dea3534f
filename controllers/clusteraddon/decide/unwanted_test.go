// SPDX-License-Identifier: Apache-2.0

package decide_test

import (
	"math/rand/v2"
	"testing"

	"github.com/cluster-chandler/chandler/controllers/clusteraddon/decide"
)

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
			TakenOver: flip(), RemovalHeld: flip(), LacksAccount: flip(),
		}
		mayBeWanted := u.Stack != decide.Known || u.OtherAwaited && !u.Assigned || u.TakenOver || u.RemovalHeld
		if u.Fate() == decide.Leaves && (!u.Ran || u.LacksAccount || mayBeWanted && !u.Removing) {
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
