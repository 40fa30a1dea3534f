// SPDX-License-Identifier: Apache-2.0

package instances

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/audit"
)

// minGrace is how long after a user's write an instance may at least act on what was
// before, see grace.
const minGrace = 5 * time.Second

// evaluate finds, in audit logs, what instances did outside of their scopes.
//
// For each write by an instance it asks whose the object was at that time. The namespace
// of an object never changes; there is no doubt. The label may change. An object that the
// write left with the label of another instance wasn't this instance's to write. The API
// server knows the order of writes to one object. A workload cluster has no label: its
// Cluster's instance may write to it, as of grace before the write.
type evaluate struct {
	w         *world
	instances map[string]*instance // by user on the management cluster
	versions  map[string]*instance // by version of the program, which workload clusters are told
	history   history
	// grace is how long after a user's write an instance may still act on what was before.
	// It learns of the write by a watch, and ends the reconcile that it is in. On a busy
	// machine both take longer, by what it takes to act on something new in the same log.
	// A write to an object that shows its scope itself has no grace at all.
	grace time.Duration

	verdicts  []string
	latest    time.Duration // that an instance wrote after its scope ended, within grace
	evaluated int
}

func newEvaluate(w *world, events []event, all ...*instance) *evaluate {
	j := &evaluate{w: w, instances: map[string]*instance{}, versions: map[string]*instance{}, history: historyOf(events)}
	for _, i := range all {
		j.instances[i.user()] = i
		j.versions[i.version] = i
	}
	j.grace = minGrace + 2*j.slowest(events)
	return j
}

// slowest returns the longest time between a Cluster's creation in an instance's
// scope, and that of its ClusterAddon.
func (j *evaluate) slowest(events []event) (longest time.Duration) {
	for k := range events {
		e := &events[k]
		i := j.instances[e.User.Username]
		if i == nil || e.ObjectRef == nil || e.ObjectRef.Resource != "clusteraddons" || e.ResponseStatus == nil || e.ResponseStatus.Code != http.StatusCreated {
			continue
		}
		at := e.RequestReceivedTimestamp.Time
		if v, created := j.history["clusters "+e.ObjectRef.Namespace+"/"+e.ObjectRef.Name].at(at); created && (i.filter == "" || v.filter == i.filter) {
			longest = max(longest, at.Sub(v.begin))
		}
	}
	return longest
}

func (j *evaluate) find(e *event, format string, args ...any) {
	j.verdicts = append(j.verdicts, describe(e)+": "+fmt.Sprintf(format, args...))
}

// management evaluates requests to the management cluster.
func (j *evaluate) management(events []event) {
	for k := range events {
		e := &events[k]
		i := j.instances[e.User.Username]
		if i == nil {
			continue
		}
		if audit.Forbidden(e) {
			j.find(e, "instance %s asked for what it may not have", i.name)
		}
		if wrote(e) && succeeded(e) {
			j.evaluated++
			j.managementWrite(i, e)
		}
	}
}

func (j *evaluate) managementWrite(i *instance, e *event) {
	ref := e.ObjectRef
	switch ref.Resource {
	case "selfsubjectaccessreviews", "subjectaccessreviews", "tokenreviews":
		return // these ask
	case "leases", "providerinstances":
		if ref.Namespace != i.namespace {
			j.find(e, "this isn't of instance %s", i.name)
		}
		return
	case "events":
		if ref.Namespace == i.namespace {
			return // about the instance itself
		}
	}
	if !i.looksAfter(ref.Namespace) {
		j.find(e, "the namespace isn't in the scope of instance %s", i.name)
		return
	}
	if i.filter == "" {
		return
	}
	switch ref.Resource {
	case "events":
	case "clusteraddons":
		j.labelled(i, e)
		if ref.Subresource == "" {
			j.inTime(i, e, "clusters", ref.Name, false)
		}
	case "addonstacks":
		j.labelled(i, e, addonsv1.SharedWatchFilter)
	case "controllerrevisions":
		j.labelled(i, e, addonsv1.SharedWatchFilter)
		if stack := stackOfRevision(e); stack != "" {
			j.inTime(i, e, "addonstacks", stack, false)
		}
	default:
		j.find(e, "instance %s has no business with it", i.name)
	}
}

// labelled expects the object, as the write left it, to have the instance's label.
func (j *evaluate) labelled(i *instance, e *event, also ...string) {
	object := &metav1.PartialObjectMetadata{}
	if e.ResponseObject == nil || json.Unmarshal(e.ResponseObject.Raw, object) != nil || object.Name == "" {
		return // a Status, as of a delete
	}
	if label := object.Labels[clusterv1.WatchLabel]; label != i.filter && !slices.Contains(also, label) {
		j.find(e, "instance %s of filter %q wrote what has filter %q", i.name, i.filter, label)
	}
}

func stackOfRevision(e *event) string {
	revision := &appsv1.ControllerRevision{}
	if e.ResponseObject == nil || json.Unmarshal(e.ResponseObject.Raw, revision) != nil {
		return ""
	}
	return revision.Labels[addonsv1.StackNameLabel]
}

// workload evaluates writes to a workload cluster. The version of the program shows
// which instance did it, and the user shows which Cluster it was for.
func (j *evaluate) workload(events []event) {
	for k := range events {
		e := &events[k]
		namespace, cluster, ok := j.w.clusterOf(e.User.Username)
		if !ok || !wrote(e) || !succeeded(e) {
			continue
		}
		version, _, _ := strings.Cut(strings.TrimPrefix(e.UserAgent, "chandler/"), " ")
		i := j.versions[version]
		if i == nil {
			j.find(e, "an unknown program, %s", e.UserAgent)
			continue
		}
		j.evaluated++
		if !i.looksAfter(namespace) {
			j.find(e, "the Cluster's namespace isn't in the scope of instance %s", i.name)
			continue
		}
		j.inTime(i, e, "clusters", namespace+"/"+cluster, true)
	}
}

// inTime expects the instance to have been in charge of the object not longer than
// grace before the request, and a Cluster not to have been paused, if that matters.
func (j *evaluate) inTime(i *instance, e *event, resource, name string, unpaused bool) {
	if !strings.Contains(name, "/") {
		name = e.ObjectRef.Namespace + "/" + name
	}
	late, ok := j.history[resource+" "+name].late(e.RequestReceivedTimestamp.Time, e.StageTimestamp.Time, func(s state) bool {
		inScope := i.filter == "" || s.filter == i.filter || resource == "addonstacks" && s.filter == addonsv1.SharedWatchFilter
		return s.exists && inScope && (!unpaused || !s.paused)
	})
	if !ok || late > j.grace {
		since := "and never was"
		if ok {
			since = fmt.Sprintf("for %s, more than %s", late, j.grace)
		}
		j.find(e, "instance %s isn't in charge of %s %s, %s", i.name, resource, name, since)
		return
	}
	j.latest = max(j.latest, late)
}
