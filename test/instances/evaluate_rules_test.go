// SPDX-License-Identifier: Apache-2.0

package instances

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// TestEvaluate shows that the evaluate of audit logs finds what it is there for.
func TestEvaluate(t *testing.T) {
	t.Parallel()
	red, blue := instanceOf(overlay{name: "red", namespaces: []string{"team-a"}}, 0), instanceOf(overlay{name: "blue", namespaces: []string{"team-c"}, filter: "blue"}, 1)
	const admin = "kubernetes-admin"
	on := func(user, verb, resource, subresource, namespace, name, filter string, after time.Duration) event {
		return made(user, verb, resource, subresource, namespace, name, filter, after)
	}
	relabelled := []event{
		on(admin, "create", "clusters", "", "team-c", "c", "blue", 0),
		on(admin, "patch", "clusters", "", "team-c", "c", "green", time.Minute),
	}
	toWorkload := func(i *instance, namespace string, after time.Duration) event {
		e := on("chandler:w:"+namespace+":c", "patch", "configmaps", "", "any", "settings", "", after)
		e.UserAgent = "chandler/" + i.version
		return e
	}
	forbidden := on(red.user(), "list", "secrets", "", "team-a", "", "", 0)
	forbidden.ResponseStatus.Code = 403

	for name, tc := range map[string]struct {
		events, workload []event
		found            string // "" for nothing
	}{
		"its namespace":            {events: []event{on(red.user(), "patch", "clusteraddons", "", "team-a", "c", "", 0)}},
		"another namespace":        {events: []event{on(red.user(), "patch", "clusteraddons", "", "team-b", "c", "", 0)}, found: "namespace"},
		"all namespaces":           {events: []event{on(red.user(), "create", "clusteraddons", "", "", "c", "", 0)}, found: "namespace"},
		"its lease":                {events: []event{on(red.user(), "update", "leases", "", "chandler-red", "l", "", 0)}},
		"another lease":            {events: []event{on(red.user(), "update", "leases", "", "team-a", "l", "", 0)}, found: "isn't of instance"},
		"a refusal":                {events: []event{forbidden}, found: "may not have"},
		"its filter":               {events: append(relabelled, on(blue.user(), "patch", "clusteraddons", "status", "team-c", "c", "blue", time.Second))},
		"another filter":           {events: append(relabelled, on(blue.user(), "patch", "clusteraddons", "status", "team-c", "c", "green", time.Second)), found: `filter "green"`},
		"no filter":                {events: []event{on(blue.user(), "patch", "addonstacks", "status", "team-c", "s", "", 0)}, found: `filter ""`},
		"the filter of all":        {events: []event{on(blue.user(), "patch", "addonstacks", "status", "team-c", "s", "shared", 0)}},
		"a Cluster that left":      {events: append(relabelled, on(blue.user(), "patch", "clusteraddons", "", "team-c", "c", "blue", 2*time.Minute)), found: "isn't in charge"},
		"a Cluster that just left": {events: append(relabelled, on(blue.user(), "patch", "clusteraddons", "", "team-c", "c", "blue", time.Minute+time.Second))},
		"a Cluster":                {events: []event{on(blue.user(), "patch", "clusters", "", "team-c", "c", "blue", 0)}, found: "no business"},
		"its workload cluster":     {events: relabelled, workload: []event{toWorkload(blue, "team-c", time.Second)}},
		"it was relabelled":        {events: relabelled, workload: []event{toWorkload(blue, "team-c", 2*time.Minute)}, found: "isn't in charge"},
		"another's workload":       {events: relabelled, workload: []event{toWorkload(red, "team-c", time.Second)}, found: "namespace isn't in the scope"},
		"a Cluster that never was": {workload: []event{toWorkload(red, "team-a", time.Second)}, found: "never was"},
		"as late as others are early": {events: append(relabelled,
			on(admin, "create", "clusters", "", "team-c", "d", "blue", 0), answered(on(blue.user(), "patch", "clusteraddons", "", "team-c", "d", "blue", 10*time.Second), http.StatusCreated),
			on(blue.user(), "patch", "clusteraddons", "", "team-c", "c", "blue", time.Minute+24*time.Second))},
		"later than others are early": {events: append(relabelled,
			on(admin, "create", "clusters", "", "team-c", "d", "blue", 0), answered(on(blue.user(), "patch", "clusteraddons", "", "team-c", "d", "blue", 10*time.Second), http.StatusCreated),
			on(blue.user(), "patch", "clusteraddons", "", "team-c", "c", "blue", time.Minute+26*time.Second)), found: "isn't in charge"},
	} {
		t.Run(name, func(t *testing.T) {
			j := newEvaluate(&world{id: "w"}, tc.events, red, blue)
			j.management(tc.events)
			j.workload(tc.workload)
			if found := lines(j.verdicts); (len(j.verdicts) > 0) != (tc.found != "") || !strings.Contains(found, tc.found) {
				t.Errorf("the evaluate finds %q, expected %q", found, tc.found)
			}
		})
	}
}

func answered(e event, code int32) event {
	e.ResponseStatus.Code = code
	return e
}

func instanceOf(o overlay, number int) *instance {
	d := &appsv1.Deployment{}
	d.Spec.Template.Spec = corev1.PodSpec{ServiceAccountName: "manager-" + o.name}
	return &instance{overlay: o, namespace: o.runsIn(), version: versionNumber(number), deployment: d}
}

// made is a write that was answered with the object.
func made(user, verb, resource, subresource, namespace, name, filter string, after time.Duration) event {
	object := metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	if filter != "" {
		object.Labels = map[string]string{clusterv1.WatchLabel: filter}
	}
	raw, err := json.Marshal(object)
	if err != nil {
		panic(err) // of a literal
	}
	at := metav1.NewMicroTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(after))
	e := event{
		Verb: verb, RequestReceivedTimestamp: at, StageTimestamp: at, ResponseStatus: &metav1.Status{Code: 200},
		ObjectRef:      &auditv1.ObjectReference{Resource: resource, Subresource: subresource, Namespace: namespace, Name: name},
		ResponseObject: &runtime.Unknown{Raw: raw},
	}
	e.User.Username = user
	return e
}
