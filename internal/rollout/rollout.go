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
	// State at Assigned, and since when it lasts. Started is when the cluster last began to work on it, zero if it
	// hasn't reported yet.
	State          addonsv1.StackState
	Since, Started time.Time
	// WasReady says that it was ready when it left the revision before, or had none.
	WasReady bool
	// Unfinished says that Assigned was never completed, and isn't the target: the cluster is to leave it first.
	Unfinished bool
	// Away says why nothing can be done there now, "" if something can. Unreachable says that it doesn't answer.
	Away        string
	Unreachable bool
	AwaySince   time.Time
}

// Stop is why no cluster starts now.
type Stop struct {
	Phase addonsv1.RolloutPhase // "" if clusters may start
	Until time.Time             // when that changes; zero if it isn't known
}

// Input is all that a decision depends on.
type Input struct {
	Now      time.Time
	Strategy Strategy
	// Target is the revision that clusters are to have, "" for none. Known says that it was completed before: it
	// needs no waves then.
	Target string
	Known  bool
	// Began is when the first cluster was brought to the target, zero if none was.
	Began time.Time
	// Back says that a newer revision was rejected. Awaited says that a newer one waits for the end of this one.
	Back, Awaited bool
	// HasPrevious says that there is a completed revision to go back to.
	HasPrevious bool
	Stop        Stop
	// Approved are the names of waves that somebody approved. With [All] there are no soaks either.
	Approved sets.Set[string]
	Clusters []Cluster
	// Others are the other provider instances with clusters of the stack.
	Others []addonsv1.StackInstance
}

// All in Input.Approved stands for all waves.
const All = "*"

// Decision is what is to be done.
type Decision struct {
	Phase addonsv1.RolloutPhase
	// Wave is the index in Waves that the phase is about.
	Wave int
	// Start are clusters that get the target now.
	Start []string
	// Reject says that the target is to be given up.
	Reject bool
	// WavesDone is how many waves are over, from the first one.
	WavesDone int
	Waves     []Count
	// Next is when time alone changes the decision; zero if it doesn't.
	Next time.Time
}

// Count is how far a wave is.
type Count struct {
	Name string
	// Total clusters, and of these: Updated are to have the target, Done are ready at it.
	Total, Updated, Done int
	// Failed and Away have the names of clusters that aren't ready any more, and of those nothing can be done on.
	Failed, Away []string
	// ReadySince is when the last one of the clusters that are done became ready, zero if there is none.
	ReadySince time.Time
}
