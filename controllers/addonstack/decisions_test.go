// SPDX-License-Identifier: Apache-2.0

package addonstack

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	testclock "k8s.io/utils/clock/testing"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/management"
	"github.com/cluster-chandler/chandler/fleet"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/member"
	"github.com/cluster-chandler/chandler/internal/stack"
	"github.com/cluster-chandler/chandler/test/must"
)

// keeping is a reconciler of a stack in its second generation, which a revision keeps.
func keeping(t *testing.T) (*Reconciler, *addonsv1.AddonStack, *appsv1.ControllerRevision) {
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
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(s, revision).Build()
	return &Reconciler{
		Turns:  &management.Turns{},
		Client: c, APIReader: c, Recorder: events.NewFakeRecorder(100), Clock: testclock.NewFakePassiveClock(revision.CreationTimestamp.Time),
		Members: &member.Inventory{Client: c, Fleet: fleet.NewProvider(fleet.Options{})},
	}, s, revision
}

func read(t *testing.T, c client.Client, o client.Object) {
	t.Helper()
	must.Succeed(t, c.Get(t.Context(), client.ObjectKeyFromObject(o), o))
}

// A spec is kept only as it is there now, and in no place of a newer one. A spec that is kept already isn't written again, but
// for its generation. If it returns to what an earlier revision keeps, that one becomes the newest.
func TestKeepRevision(t *testing.T) {
	for name, tc := range map[string]struct {
		seen       func(s *addonsv1.AddonStack) // what the cache shows, and was validated
		generation int64                        // of the revision that keeps the spec, 2 if it isn't set
		newest     bool                         // another revision is the newest
		stale      bool
		number     int64 // that the revision has then; it is written if that is another, or its generation
	}{
		"it is kept":                      {number: 1},
		"the spec has changed":            {seen: func(s *addonsv1.AddonStack) { s.Generation = 1 }, generation: 1, stale: true, number: 1},
		"it is another stack":             {seen: func(s *addonsv1.AddonStack) { s.UID = "0" }, stale: true, number: 1},
		"a newer spec is kept":            {generation: 3, stale: true, number: 1},
		"an older spec was just the same": {generation: 1, number: 1},
		"it goes back":                    {generation: 1, newest: true, number: 8},
	} {
		t.Run(name, func(t *testing.T) {
			r, s, revision := keeping(t)
			recorder := events.NewFakeRecorder(1)
			r.Recorder = recorder
			read(t, r.Client, revision)
			if tc.generation > 0 {
				stack.SetGeneration(revision, tc.generation)
				must.Succeed(t, r.Client.Update(t.Context(), revision))
			}
			if tc.newest {
				must.Succeed(t, r.Client.Create(t.Context(), stack.Snapshot(s, []byte("{}"), 7)))
			}
			read(t, r.Client, s)
			if tc.seen != nil {
				tc.seen(s)
			}
			revisions, err := revisionHistory{r}.keepRevision(t.Context(), s, nil, nil)
			if apierrors.IsConflict(err) != tc.stale || err != nil && !tc.stale {
				t.Fatalf("got %v", err)
			}
			is := revision.DeepCopy()
			read(t, r.Client, is)
			isOld := !tc.stale && stack.Generation(revision) != s.Generation
			if writes := is.ResourceVersion != revision.ResourceVersion; writes != isOld || is.Revision != tc.number || (len(recorder.Events) > 0) != tc.newest {
				t.Errorf("it was written: %t, number %d, %d events", writes, is.Revision, len(recorder.Events))
			}
			if !tc.stale && (revisions[0].Name != revision.Name || stack.Generation(&revisions[0]) != s.Generation) {
				t.Errorf("got %+v", revisions)
			}
		})
	}
}

// A newer program has kept the spec with what this one doesn't know.
func TestRevisionOfANewerProgramIsNotUsed(t *testing.T) {
	r, s, revision := keeping(t)
	revision.Data.Raw = bytes.Replace(revision.Data.Raw, []byte(`"addons"`), []byte(`"later":true,"addons"`), 1)
	_, err := revisionHistory{r}.snapshot(t.Context(), s, []appsv1.ControllerRevision{*revision})
	if unknown, ok := errors.AsType[*failure.Error](err); !ok || unknown.Reason != addonsv1.UnknownFieldsReason {
		t.Errorf("got %v", err)
	}
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
			read(t, r.Client, s)
			tc.spoil(&s.Spec)
			must.Succeed(t, r.Client.Update(t.Context(), s))
			_, err := r.inspect(t.Context(), s)
			must.Succeed(t, err)
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
	r, s, _ := keeping(t)
	s.Annotations = map[string]string{clusterv1.PausedAnnotation: ""}
	s.Status.LatestRevision = "platform-gone"
	if _, err := r.inspect(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if s.Status.LatestRevision != "platform-gone" {
		t.Errorf("got %s", s.Status.LatestRevision)
	}
	s.Status.LatestRevision = ""
	if _, err := r.inspect(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if s.Status.LatestRevision == "" {
		t.Error("a lost status isn't restored")
	}
}

// A bundle is read once more for another spec, and asked for whatever digest a spec names.
func TestBundleOfAnotherSpec(t *testing.T) {
	r, s, _ := bundled(t)
	e, err := bundles{r}.expand(t.Context(), s, &resolution{}, nil)
	must.Succeed(t, err)
	kept := e.of(s).Spec.DeepCopy()
	kept.Addons = append(kept.Addons, addonsv1.Addon{Name: "of the previous spec"})
	revision := revisionOf(t, kept)
	for generation, addons := range map[int64]int{1: len(kept.Addons), 2: len(e.Addons)} {
		stack.SetGeneration(revision, 1)
		s.Generation = generation
		again, err := bundles{r}.expand(t.Context(), s, &resolution{}, []appsv1.ControllerRevision{*revision})
		must.Succeed(t, err)
		if len(again.Addons) != addons {
			t.Errorf("of generation %d: %d add-ons, want %d", generation, len(again.Addons), addons)
		}
	}
	from := s.Spec.Source.DeepCopy()
	from.Digest = "sha256:" + strings.Repeat("0", 64)
	if digest, err := (bundles{r}).digestOf(t.Context(), s.Namespace, from, &addonsv1.AddonStackSpec{}); err == nil {
		t.Errorf("the bundle has digest %s", digest)
	}
}
