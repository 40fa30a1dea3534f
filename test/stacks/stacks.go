// SPDX-License-Identifier: Apache-2.0

// Package stacks has AddonStacks for tests of their controller.
package stacks

import (
	"encoding/json"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/addonstack/following"
	"github.com/cluster-chandler/chandler/controllers/addonstack/report"
	"github.com/cluster-chandler/chandler/controllers/addonstack/sources"
	"github.com/cluster-chandler/chandler/internal/stack"
	"github.com/cluster-chandler/chandler/test/must"
)

// Following returns a stack that follows versions of add-on web.
func Following() *addonsv1.AddonStack {
	s := &addonsv1.AddonStack{}
	s.Namespace, s.Name, s.UID, s.Generation = "team", "platform", "1", 1
	s.Spec.Addons = []addonsv1.Addon{{
		Name: "web", Chart: addonsv1.ChartSource{Version: "~1.4", OCI: &addonsv1.OCISource{URL: "oci://example.org/web"}},
	}}
	return s
}

// Kept returns a management cluster, and the two objects in it: a stack in its second generation, and the revision that keeps its spec.
func Kept(t testing.TB) (client.Client, *addonsv1.AddonStack, *appsv1.ControllerRevision) {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, clusterv1.AddToScheme, addonsv1.AddToScheme} {
		must.Succeed(t, add(scheme))
	}
	s := &addonsv1.AddonStack{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "platform", UID: "1", Generation: 2}}
	s.Spec.Addons = []addonsv1.Addon{{Name: "web", Chart: addonsv1.ChartSource{Path: "web"}}}
	content, err := json.Marshal(s.Spec)
	must.Succeed(t, err)
	revision := stack.Snapshot(s, content, 1)
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(s, revision).WithStatusSubresource(s).Build(), s, revision
}

// Revision returns the revision of a name that keeps a spec.
func Revision(t testing.TB, name string, spec addonsv1.AddonStackSpec) appsv1.ControllerRevision {
	t.Helper()
	content, err := json.Marshal(spec)
	must.Succeed(t, err)
	return appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: runtime.RawExtension{Raw: content}}
}

// Read reads an object as it is now.
func Read(t testing.TB, c client.Client, o client.Object) {
	t.Helper()
	must.Succeed(t, c.Get(t.Context(), client.ObjectKeyFromObject(o), o))
}

// Notes returns the events that a recorder got since the last call.
func Notes(recorder *events.FakeRecorder) []string {
	var notes []string
	for len(recorder.Events) > 0 {
		notes = append(notes, <-recorder.Events)
	}
	return notes
}

// SourcesReady returns the condition SourcesReady of a stack that follows versions alone, all of which clusters have.
func SourcesReady(f *following.Resolution) metav1.Condition {
	available := report.Condition(addonsv1.SourceAvailableCondition, metav1.ConditionTrue, addonsv1.SourceAvailableReason, "")
	var asked []addonsv1.StackSource
	for _, w := range f.Followed {
		asked = append(asked, addonsv1.StackSource{Addon: w.Name, Conditions: []metav1.Condition{sources.Availability(f, w.Name, available)}})
	}
	return sources.Ready(f, asked)
}
