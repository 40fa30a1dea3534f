// SPDX-License-Identifier: Apache-2.0

package health

import (
	"cmp"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/cluster-chandler/chandler/internal/message"
)

// Finding is why an object isn't ready any more. Its message has no words of the cluster's but names.
type Finding struct {
	Reason, Message string
	// Words are what the scheduler, the kubelet or the object itself says, "" if nothing does. They may quote Secrets.
	Words string
	// Seen is which replicas of which generation it is about, where no pod says why they are missing; else "". While that
	// changes, somebody is at work: a finding lasts from when it was last another one.
	Seen string
}

// maxWords is the length in bytes of what a message quotes of a cluster.
const maxWords = 256

// Text returns the message with the words, once secrets are hidden in these.
func (f *Finding) Text(hide func(words string) string) string {
	if f.Words == "" {
		return f.Message
	}
	return f.Message + ": " + message.Shorten(hide(f.Words), maxWords)
}

// Before is what was seen of a workload when it was found well last: how many replicas were available at the most since
// then. Zero means that this isn't known.
type Before struct{ Available int32 }

// evaluate returns what is wrong with a workload, nil if nothing is known to be, and what is to be given to the next call.
// Pods are its own, or some of them.
func (is replicas) evaluate(pods []corev1.Pod, before Before) (*Finding, Before) {
	if !is.lacks() {
		return nil, Before{Available: is.available}
	}
	finding := verdict(is, pods, cmp.Or(before.Available, is.wanted))
	if before.Available != 0 && finding == nil {
		before.Available = max(before.Available, is.available)
	}
	return finding, before
}

// verdict decides what is wrong with a workload that has fewer available replicas than it is to have; nil if nothing is
// known to be. Pods are its own, or some of them. Before is how many replicas were available at the most since it was
// found well last, as many as it is to have if that isn't known.
func verdict(is replicas, pods []corev1.Pod, before int32) *Finding {
	counts := fmt.Sprintf("%d of %d replicas are available", is.available, is.wanted)
	if is.refused != "" {
		return &Finding{Reason: ReasonPodsRefused, Message: counts + ", and no pod can be made. See its condition ReplicaFailure"}
	}
	waits := whyNoneRuns(pods)
	if waits != nil {
		waits.Message = counts + ". " + waits.Message
	}
	isLess := is.available < min(before, is.wanted)
	switch {
	case waits != nil && waits.Reason != ReasonUnschedulable:
		return waits
	case is.stuck:
		return &Finding{Reason: ReasonUpdateStuck, Message: counts + ", and its rolling update didn't come to its end in time"}
	case is.updating || !isLess:
		return nil
	case waits == nil:
		waits = &Finding{Reason: ReasonReplicasUnavailable, Message: counts}
	}
	waits.Seen = fmt.Sprintf("%s of generation %d", counts, is.generation)
	return waits
}
