// SPDX-License-Identifier: Apache-2.0

package addonstack_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	testclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/addonstack"
	"github.com/cluster-chandler/chandler/controllers/addonstack/sources"
	"github.com/cluster-chandler/chandler/controllers/management"
	"github.com/cluster-chandler/chandler/fleet"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/member"
	"github.com/cluster-chandler/chandler/internal/render"
	"github.com/cluster-chandler/chandler/internal/render/worker"
	"github.com/cluster-chandler/chandler/internal/source"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/registry"
	"github.com/cluster-chandler/chandler/test/stacks"
	"github.com/cluster-chandler/chandler/test/targz"
	"github.com/cluster-chandler/chandler/test/wait"
)

func TestMain(m *testing.M) {
	worker.RunIfAsked()
	os.Exit(m.Run())
}

// keeping is a reconciler of a stack in its second generation, which a revision keeps.
func keeping(t *testing.T) (*addonstack.Reconciler, *addonsv1.AddonStack, *appsv1.ControllerRevision) {
	t.Helper()
	c, s, revision := stacks.Kept(t)
	sources, err := source.New(source.Options{})
	must.Succeed(t, err)
	return &addonstack.Reconciler{
		Turns: &management.Turns{}, Sources: sources, Statuses: management.Statuses{Client: c, Clock: clock.RealClock{}},
		Client: c, APIReader: c, Recorder: events.NewFakeRecorder(100), Clock: testclock.NewFakePassiveClock(revision.CreationTimestamp.Time),
		Members: &member.Inventory{Client: c, Fleet: fleet.NewProvider(fleet.Options{})},
	}, s, revision
}

// reconcile reconciles the stack, and reads it.
func reconcile(t *testing.T, r *addonstack.Reconciler, s *addonsv1.AddonStack) {
	t.Helper()
	request := mcreconcile.Request{}
	request.NamespacedName = client.ObjectKeyFromObject(s)
	_, err := r.Reconcile(t.Context(), request)
	must.Succeed(t, err)
	stacks.Read(t, r.Client, s)
}

// TestInvalidSpecIsNotTakenUp tells what is wrong with a spec, and keeps no revision of it: the previous one stays in force.
func TestInvalidSpecIsNotTakenUp(t *testing.T) {
	for name, tc := range map[string]struct {
		spoil        func(*addonsv1.AddonStackSpec)
		reason, says string
	}{
		"selector": {func(spec *addonsv1.AddonStackSpec) {
			spec.ClusterSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "env", Operator: "Is", Values: []string{"prod"}}}}
		}, addonsv1.InvalidSelectorReason, "spec.clusterSelector"},
		"cycle":      {func(spec *addonsv1.AddonStackSpec) { spec.Addons[0].DependsOn = []string{"web"} }, addonsv1.DependencyCycleReason, "web -> web"},
		"dependency": {func(spec *addonsv1.AddonStackSpec) { spec.Addons[0].DependsOn = []string{"nobody"} }, addonsv1.UnknownDependencyReason, "spec.addons[0].dependsOn[0]"},
	} {
		t.Run(name, func(t *testing.T) {
			r, s, revision := keeping(t)
			stacks.Read(t, r.Client, s)
			tc.spoil(&s.Spec)
			must.Succeed(t, r.Client.Update(t.Context(), s))
			reconcile(t, r, s)
			if is := conditions.Get(s, addonsv1.ValidCondition); is == nil || is.Status != metav1.ConditionFalse || is.Reason != tc.reason || !strings.Contains(is.Message, tc.says) {
				t.Errorf("Valid is %+v", is)
			}
			kept := &appsv1.ControllerRevisionList{}
			must.Succeed(t, r.Client.List(t.Context(), kept))
			must.Len(t, 1, kept.Items, "no revision is made")
			must.Equal(t, revision.Name, s.Status.LatestRevision, "the latest revision")
		})
	}
}

// While the newest revision is gone, an older one isn't taken for it.
func TestLostRevisionStaysTheLatest(t *testing.T) {
	r, s, revision := keeping(t)
	stacks.Read(t, r.Client, s)
	s.Annotations = map[string]string{clusterv1.PausedAnnotation: ""}
	must.Succeed(t, r.Client.Update(t.Context(), s))
	for latest, want := range map[string]string{"platform-gone": "platform-gone", "": revision.Name} {
		s.Status.LatestRevision = latest
		must.Succeed(t, r.Client.Status().Update(t.Context(), s))
		r.Statuses.Forget(client.ObjectKeyFromObject(s))
		reconcile(t, r, s)
		must.Equal(t, want, s.Status.LatestRevision, "the latest revision")
	}
}

// Somebody who has published something else in the place of what was rejected needn't wait: look-now has the source asked at
// once. Nobody asks it before.
func TestLookNowAsksForWhatWasRejected(t *testing.T) {
	server := registry.Start(t, registry.Options{PlainHTTP: true})
	server.PushArchive(t, []byte("no archive"), "web", "1.0.0")
	renderer := render.New(render.Options{Workers: 1})
	t.Cleanup(renderer.Close)
	r, s, _ := keeping(t)
	var err error
	if r.Sources, err = source.New(source.Options{Opener: renderer, AllowLoopback: true}); err != nil {
		t.Fatal(err)
	}
	look := func(change func()) {
		stacks.Read(t, r.Client, s)
		change()
		must.Succeed(t, r.Client.Update(t.Context(), s))
		reconcile(t, r, s)
	}
	look(func() {
		s.Spec.Addons[0].Chart = addonsv1.ChartSource{Version: "1.0.0", OCI: &addonsv1.OCISource{URL: server.URL("web"), PlainHTTP: ptr.To(true)}}
	})
	fetch := func() error {
		ref := sources.In(s)["web"]
		digest, err := r.Sources.Resolve(t.Context(), ref)
		if err == nil {
			_, err = r.Sources.Fetch(t.Context(), ref, digest)
		}
		return err
	}
	isInvalid := func(err error) bool {
		failed, ok := errors.AsType[*failure.Error](err)
		return ok && failed.Reason != failure.ArtifactPending
	}
	wait.Until(t, time.Minute, "it is rejected", func() error {
		if err := fetch(); !isInvalid(err) {
			return fmt.Errorf("got %w", err)
		}
		return nil
	})
	server.Push(t, targz.Of(t, targz.Entry{Name: "web/Chart.yaml", Data: "apiVersion: v2\nname: web\nversion: 1.0.0\n"}), "web", "1.0.0")
	if err := fetch(); !isInvalid(err) {
		t.Errorf("before its time: %v", err)
	}
	look(func() { metav1.SetMetaDataAnnotation(&s.ObjectMeta, addonsv1.LookNowAnnotation, "now") })
	wait.Until(t, time.Minute, "it is fetched", fetch)
}

// A stack whose spec is kept says how its sources are.
func TestKeptSpecTellsOfItsSources(t *testing.T) {
	r, s, _ := keeping(t)
	reconcile(t, r, s)
	if !conditions.Has(s, addonsv1.SourcesReadyCondition) {
		t.Errorf("conditions: %+v", s.Status.Conditions)
	}
}

// TestAnotherStackOfTheName counts the clusters of a stack that takes the place of another one of its name at once, though those of
// the other had just been counted.
func TestAnotherStackOfTheName(t *testing.T) {
	r, s, _ := keeping(t)
	counted := func() bool { // of 1100 clusters, of which there are none
		t.Helper()
		stacks.Read(t, r.Client, s)
		s.Status.Clusters = &addonsv1.ClusterCounts{Total: 1100}
		must.Succeed(t, r.Client.Status().Update(t.Context(), s))
		r.Statuses.Forget(client.ObjectKeyFromObject(s))
		reconcile(t, r, s)
		return s.Status.Clusters.Total == 0
	}
	must.Equal(t, true, counted(), "the first time")
	must.Equal(t, false, counted(), "at once again")
	must.Succeed(t, r.Client.Delete(t.Context(), s))
	s.UID, s.ResourceVersion = "2", ""
	must.Succeed(t, r.Client.Create(t.Context(), s))
	must.Equal(t, true, counted(), "another stack of the name")
}

// TestCountsThatGrowWait writes how many clusters are ready two seconds after the last write, and at once that all are, or that one
// failed.
func TestCountsThatGrowWait(t *testing.T) {
	r, s, _ := keeping(t)
	now := testclock.NewFakePassiveClock(time.Now())
	r.Clock, r.Statuses.Clock = now, now
	stacks.Read(t, r.Client, s)
	s.Spec.ClusterSelector = &metav1.LabelSelector{}
	must.Succeed(t, r.Client.Update(t.Context(), s))
	names := []string{"a", "b", "c"}
	for _, name := range names {
		must.Succeed(t, r.Client.Create(t.Context(), &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: name}}))
	}
	reconcile(t, r, s)
	for _, name := range names {
		must.Succeed(t, r.Client.Create(t.Context(), &addonsv1.ClusterAddon{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: name},
			Spec:       addonsv1.ClusterAddonSpec{Stacks: []addonsv1.StackRevision{{Name: s.Name, Revision: s.Status.LatestRevision}}},
		}))
	}
	become := func(name string, phase addonsv1.AddonPhase) *addonsv1.ClusterCounts {
		t.Helper()
		ca := &addonsv1.ClusterAddon{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: name}}
		stacks.Read(t, r.Client, ca)
		state := addonsv1.StackReady
		if phase == addonsv1.AddonFailed {
			state = addonsv1.StackFailed
		}
		ca.Status.Stacks = []addonsv1.StackStatus{{Name: s.Name, Revision: s.Status.LatestRevision, State: state}}
		ca.Status.Addons = []addonsv1.AddonStatus{{Name: "web", Namespace: addonsv1.DefaultAddonNamespace, Stack: s.Name, Phase: phase}}
		must.Succeed(t, r.Client.Update(t.Context(), ca))
		reconcile(t, r, s)
		return s.Status.Clusters
	}
	must.Equal(t, 0, become("a", addonsv1.AddonReady).Ready, "right after the last write")
	now.SetTime(now.Now().Add(2 * time.Second))
	reconcile(t, r, s)
	must.Equal(t, 1, s.Status.Clusters.Ready, "two seconds after it")
	must.Equal(t, 1, become("b", addonsv1.AddonReady).Ready, "after the next write")
	failed := become("c", addonsv1.AddonFailed)
	must.Equal(t, 2, failed.Ready, "once one failed")
	must.Equal(t, 1, failed.Failed, "once one failed")
	must.Equal(t, 3, become("c", addonsv1.AddonReady).Ready, "all of them")
}
