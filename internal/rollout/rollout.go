// SPDX-License-Identifier: Apache-2.0

// Package rollout decides which clusters of an AddonStack get a new revision, and when. It only computes: all that a
// decision depends on is in its input, and nothing is remembered between two decisions.
package rollout

import (
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// Cluster is a cluster that the stack selects.
type Cluster struct {
	Name   string
	Labels labels.Set
	// Joined is when the cluster became one of the fleet.
	Joined time.Time
	// Assigned is the revision that the cluster is to have, "" for none.
	Assigned string
	// GoesBackTo is the revision that it has to have if the target is rejected, "" for none.
	GoesBackTo string
	// State at Assigned, and since when it lasts. Started is when the cluster last began to work on it, zero if it
	// hasn't reported yet.
	State          addonsv1.StackState
	Since, Started time.Time
	// WasReady says that it was ready when it left the revision before, or had none.
	WasReady bool
	// Unfinished says that Assigned wasn't completed, and isn't the target: the cluster is to leave it first.
	Unfinished bool
	// Away says why nothing can be done there now, "" if something can. Unreachable says that it doesn't answer, and Unseen that
	// nobody knows yet whether it does, as before the first connection.
	Away        string
	Unreachable bool
	Unseen      bool
	AwaySince   time.Time
}

// Stop is why no cluster starts now.
type Stop struct {
	Phase addonsv1.RolloutPhase // "" if clusters may start
	Until time.Time             // when that changes; zero if it isn't known
	Why   string                // of a pause, for people
}

// Mode is how clusters are brought to the target, or from it.
type Mode int

const (
	// Staged brings the waves of the strategy to the target, one after the other.
	Staged Mode = iota
	// AllAtOnce is of a target that all clusters got at once, without a rollout.
	AllAtOnce
	// SteppingBack brings all clusters to the revision that was completed last, without gates.
	SteppingBack
	// Following is of a completed target: clusters that were away, or joined, follow.
	Following
	// Returning brings the clusters that have the target, which was rejected, back to what they had.
	Returning
)

// Input is all that a decision depends on.
type Input struct {
	Now      time.Time
	Strategy Strategy
	// Target is the revision that the rollout is of, "" for none.
	Target string
	Mode   Mode
	// Replaced says that no other cluster can get the target, as values that it was made with aren't there any more.
	Replaced bool
	// Began is when the first cluster was brought to the target, zero if none was. Last has the place of the last cluster
	// in each wave of a size at that time, and Over are the waves that are over.
	Began time.Time
	Last  map[string]uint64
	Over  sets.Set[string]
	// Returned is since when clusters go back, zero if they don't.
	Returned time.Time
	// Halted is why the rollout is halted, nil if it isn't.
	Halted *Halt
	Stop   Stop
	// Approved are the names of waves that somebody approved. With [All] there are no soaks either. Promoted are those that
	// are over without a proof.
	Approved, Promoted sets.Set[string]
	Clusters           []Cluster
	// Others are the other provider instances with clusters of the stack, and Elsewhere how far these clusters are.
	Others    []addonsv1.StackInstance
	Elsewhere Elsewhere
	// WatchFilter of this instance, "" if it has none.
	WatchFilter string
	// Plan says what the target does by its newest plan, for who approves it; "" if there is none.
	Plan string
}

// All in Input.Approved stands for all waves.
const All = "*"

// Decision is what is to be done.
type Decision struct {
	Phase addonsv1.RolloutPhase
	// Wave is the index in Waves that the phase is about. SoaksUntil is when its soak ends, zero if it has none now.
	Wave       int
	SoaksUntil time.Time
	// Start are clusters that get the target now; or that leave it, if it is rejected.
	Start []string
	// Halt says that the rollout is halted from now on, and Resume that it isn't any more.
	Halt   *Halt
	Resume bool
	// Reject says that the target is to be given up.
	Reject bool
	// Completed says that all clusters that count were seen Ready for long enough.
	Completed bool
	// Mode is that of the input, and Begins says that a cluster has the target, or gets it now.
	Mode   Mode
	Begins bool
	// Last has the place of the last cluster of each wave of a size, and Over are the waves that are over.
	Last  map[string]uint64
	Over  []string
	Waves []Count
	// Members are the clusters of each wave.
	Members [][]Member
	// Own is what other instances have to know; nil without any.
	Own *Progress
	// Next is when time alone changes the decision; zero if it doesn't.
	Next time.Time
}

// Member is a cluster in a wave.
type Member struct {
	*Cluster
	Standing Standing
}

// Count is how far a wave is.
type Count struct {
	Name string
	// Total clusters, and of these: Updated are to have the target, Done are ready at it.
	Total, Updated, Done int
	// Failed and Away have the names of clusters that aren't ready any more, and of those nothing can be done on.
	Failed, Away []string
	// Unsure is how many failed so lately that they are tried again.
	Unsure int
	// ReadySince is when the last one of the clusters that are done became ready, zero if there is none.
	ReadySince time.Time
}
