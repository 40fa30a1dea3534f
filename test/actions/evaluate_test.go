// SPDX-License-Identifier: Apache-2.0

package actions

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/cluster-chandler/chandler/test/audit"
)

// evaluate reads the audit log of a workload cluster.
type evaluate struct {
	*fleet
	cluster   int
	next      audit.Mark // up to which it was read
	passwords map[int]*password
	// recordless says when the records of a component's release were deleted by the operator.
	recordless map[int]time.Time
	pause      time.Time // when the cluster last began to hang; it may act later on earlier requests
	resumed    time.Time
	deletions  int
	steps      int // deletions for which a rollout was looked at
	writes     int // while a stack was paused that may have the component
}

// password is the generated one of a component on a cluster.
type password struct {
	value   string
	since   time.Time // when it was first seen
	seen    time.Time
	deleted string // by whom the Secret was deleted since
}

var objectName = regexp.MustCompile(`^(?:things\.|sh\.helm\.release\.v1\.)?k(\d)[.-]`)

// evaluateAll evaluates all clusters that answer, up to now.
func (f *fleet) evaluateAll() {
	f.t.Helper()
	for c := range f.evaluates {
		if f.links[c] != paused && f.links[c] != stopped {
			f.evaluates[c].evaluate()
		}
	}
}

// evaluate looks at all writes up to now.
func (j *evaluate) evaluate() {
	j.t.Helper()
	server := j.workloads[j.cluster]
	mark := server.Audit.Mark(j.t)
	events := j.next.Requests(j.t, func(e *audit.Event) bool {
		return audit.Write(e) && e.ObjectRef != nil && !strings.Contains(e.RequestURI, "dryRun") && e.ResponseStatus != nil && e.ResponseStatus.Code < 300
	})
	j.next = mark
	for i := range events {
		e := &events[i]
		match := objectName.FindStringSubmatch(e.ObjectRef.Name)
		isDeletion := strings.HasPrefix(e.Verb, "delete")
		if match == nil {
			if isDeletion && e.User.Username == user && e.ObjectRef.Resource != "secrets" {
				j.t.Errorf("%s: deletion of an object that nobody knows: %s", clusterName(j.cluster), e.RequestURI)
			}
			continue
		}
		if !strings.HasSuffix(j.namespace, e.ObjectRef.Namespace) && e.ObjectRef.Namespace != "" {
			continue // of another seed
		}
		k, _ := strconv.Atoi(match[1])
		if e.User.Username == user {
			j.evaluatePause(k, e)
		}
		if e.ObjectRef.Name[0] == 's' { // the record of a release
			continue
		}
		if isDeletion && e.User.Username == user {
			j.deletions++
			j.evaluateDeletion(k, e)
		}
		if e.ObjectRef.Resource == "secrets" {
			j.evaluatePassword(k, e, isDeletion)
		}
	}
	if j.t.Failed() {
		j.t.FailNow()
	}
}

// evaluateDeletion expects a reason to delete an object of a component.
func (j *evaluate) evaluateDeletion(k int, e *audit.Event) {
	j.t.Helper()
	at, since := e.RequestReceivedTimestamp.Time, time.Time{}
	if at.After(j.resumed.Add(-time.Second)) && at.Before(j.resumed.Add(lag)) {
		since = j.pause.Add(-lag)
	}
	isExtra, isCRD := strings.HasSuffix(e.ObjectRef.Name, "-extra"), e.ObjectRef.Resource == "customresourcedefinitions"
	var reason *model
	var seen []state
	for _, m := range j.believable(at, since) {
		is := m.shares[share{j.cluster, k}]
		if !slices.Contains(seen, is) {
			seen = append(seen, is)
		}
		switch {
		case isCRD && k == withCRDs:
		case is.standing == wanted && (is.pending || isExtra && !is.extra), is.standing == lost && is.excused:
			return
		case is.standing == lost && !is.sealed && !m.stacks[is.stack].orphan:
			reason = m
		}
	}
	wantsNoExtra := func(m moment) bool {
		is := m.shares[share{j.cluster, k}]
		return is.standing == wanted && !is.extra
	}
	if reason == nil && isExtra && slices.ContainsFunc(j.assigned(at), wantsNoExtra) {
		return
	}
	if reason == nil && (j.wantedLately(k, at, seen) || j.stepped(k, at, isExtra) || at.Sub(j.late[k]) < lag) {
		return
	}
	if reason == nil {
		j.t.Errorf("%s: %s at %s, though it was wanted, or nobody said that it isn't any more: %+v%s%s",
			clusterName(j.cluster), e.RequestURI, at.UTC().Format("15:04:05.000"), seen, j.trail(k), j.plans())
		return
	}
	j.guard.evaluate(j, reason, k, at)
}

// wantedLately reports whether a stack had the component for a cluster that has just been made, though not when it was made.
// Chandler may know of the cluster before it knows of the stack's edit.
func (j *evaluate) wantedLately(k int, at time.Time, seen []state) bool {
	if slices.ContainsFunc(seen, func(is state) bool { return is.standing != kept }) {
		return false
	}
	return slices.ContainsFunc(j.believable(at, at.Add(-lag)), func(m *model) bool {
		return slices.ContainsFunc(m.stacks[:], func(s stack) bool {
			return s.exists && s.has[k] && selects(s.selector, m.clusters[j.cluster].labels)
		})
	})
}

// evaluatePassword expects each version of a Secret to have the same password, unless it was deleted for a reason.
func (j *evaluate) evaluatePassword(k int, e *audit.Event, isDeletion bool) {
	j.t.Helper()
	known := j.passwords[k]
	if isDeletion {
		if known != nil {
			known.deleted = e.User.Username
		}
		return
	}
	secret := &corev1.Secret{}
	if e.ResponseObject == nil || json.Unmarshal(e.ResponseObject.Raw, secret) != nil || len(secret.Data["password"]) == 0 {
		return
	}
	at, value := e.RequestReceivedTimestamp.Time, string(secret.Data["password"])
	if known != nil && known.value != value && !j.mayRenew(k, known, at) {
		j.t.Errorf("%s: the password of %s changed at %s: %s%s",
			clusterName(j.cluster), componentName(k), at.UTC().Format("15:04:05.000"), e.RequestURI, j.trail(k))
	}
	since := at
	if known != nil && known.value == value {
		since = known.since
	}
	j.passwords[k] = &password{value: value, since: since, seen: at}
}

// mayRenew reports whether there is no password any more to go on with.
func (j *evaluate) mayRenew(k int, known *password, at time.Time) bool {
	switch {
	case j.recordless[k].After(known.seen): // the record has what a chart generated
		return true
	case j.wasLeft(k, known.since, at): // it was Helm's for a time
		return true
	case known.deleted == "":
		return false
	case known.deleted == user: // for a reason, which was evaluated
		return true
	}
	for _, m := range j.moments {
		if m.begin.Before(at) && m.begin.After(known.seen) && m.shares[share{j.cluster, k}].standing != wanted {
			return true
		}
	}
	return false
}

// window is how long a removal counts, a little less than Chandler says: it may see changes late.
const window = 9 * time.Minute

// guard counts the clusters from which stacks lost something that nobody allowed.
type guard struct {
	losses map[int][]loss // by stack
}

type loss struct {
	cluster int
	since   time.Time // that of the edit
	at      time.Time // that of the deletion; Chandler decided on it between the two
	epochs  [2]int
}

// isLong reports whether Chandler may have forgotten a loss when it decided on another one.
func (l *loss) isLong(other *loss) bool {
	return l.at.Sub(other.since) > window || other.at.Sub(l.since) > window
}

// evaluate counts a loss, and expects that no more clusters have some than removalLimit allows.
func (g *guard) evaluate(j *evaluate, m *model, k int, at time.Time) {
	j.t.Helper()
	is := m.shares[share{j.cluster, k}]
	if g.losses == nil {
		g.losses = map[int][]loss{}
	}
	this := loss{cluster: j.cluster, since: is.since, at: at, epochs: m.epochs(j.cluster)}
	g.losses[is.stack] = append(g.losses[is.stack], this)
	lost := map[int]bool{}
	for _, l := range g.losses[is.stack] {
		if !this.isLong(&l) && l.epochs == m.epochs(l.cluster) {
			lost[l.cluster] = true
		}
	}
	if most := max(len(m.clusters)/10, 1); len(lost) > most {
		j.t.Errorf("%s lost %s at %s, which should have been held: %s lost something on %d clusters (%+v), and %d may",
			clusterName(j.cluster), componentName(k), at.UTC().Format("15:04:05.000"), stackName(is.stack), len(lost), g.losses[is.stack], most)
		for c := range lost {
			j.t.Logf("%s: %+v%s%s", clusterName(c), m.shares[share{c, k}], j.evaluates[c].trail(k), j.evaluates[c].plans())
		}
	}
}

// epochs tell which removals Chandler may have forgotten.
func (m *model) epochs(c int) [2]int { return [2]int{m.epoch, m.clusters[c].epoch} }
