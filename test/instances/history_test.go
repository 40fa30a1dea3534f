// SPDX-License-Identifier: Apache-2.0

package instances

import (
	"encoding/json"
	"slices"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// state is what of an object decides whose it is.
type state struct {
	exists bool
	filter string
	paused bool
}

// version is a state in time. Its write was somewhere between begin, when it was asked
// for, and the moment it was answered; the same is so for the end.
type version struct {
	state
	begin, end time.Time
}

type versions []version

// history is what users made of objects, by "resource namespace/name".
type history map[string]versions

// historyOf reads the history from the writes of admins in an audit log.
func historyOf(events []event) history {
	h := history{}
	for k := range events {
		e := &events[k]
		if e.User.Username != "kubernetes-admin" || !wrote(e) || !succeeded(e) || e.ResponseObject == nil {
			continue
		}
		if !slices.Contains([]string{"clusters", "addonstacks"}, e.ObjectRef.Resource) {
			continue
		}
		object := &clusterv1.Cluster{} // of a stack, just the metadata
		if err := json.Unmarshal(e.ResponseObject.Raw, object); err != nil && object.Name == "" {
			continue
		}
		s := state{exists: e.Verb != "delete", filter: object.Labels[clusterv1.WatchLabel]}
		if e.ObjectRef.Resource == "clusters" {
			s.paused = object.Spec.Paused != nil && *object.Spec.Paused
		}
		h.add(e.ObjectRef.Resource+" "+e.ObjectRef.Namespace+"/"+e.ObjectRef.Name, s, e.RequestReceivedTimestamp.Time, e.StageTimestamp.Time)
	}
	return h
}

func (h history) add(key string, s state, asked, answered time.Time) {
	of := h[key]
	if n := len(of); n > 0 {
		of[n-1].end = answered
	}
	h[key] = append(of, version{state: s, begin: asked})
}

// late tells how long before a request, that was received and answered at these times,
// the object was last as wanted: zero if it was at any moment in between.
func (of versions) late(received, answered time.Time, wanted func(state) bool) (time.Duration, bool) {
	late, found := time.Duration(0), false
	for _, v := range of {
		if !wanted(v.state) || v.begin.After(answered) {
			continue
		}
		if v.end.IsZero() || !v.end.Before(received) {
			return 0, true
		}
		if since := received.Sub(v.end); !found || since < late {
			late, found = since, true
		}
	}
	return late, found
}

// at returns the version at a time, and whether that is the one that a creation made.
func (of versions) at(moment time.Time) (v version, created bool) {
	for k, v := range of {
		if v.exists && !v.begin.After(moment) && (v.end.IsZero() || !v.end.Before(moment)) {
			return v, k == 0 || !of[k-1].exists
		}
	}
	return version{}, false
}
