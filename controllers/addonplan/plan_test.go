// SPDX-License-Identifier: Apache-2.0

package addonplan_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/addonplan"
	"github.com/cluster-chandler/chandler/controllers/management"
	"github.com/cluster-chandler/chandler/fleet"
	"github.com/cluster-chandler/chandler/fleet/budget"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/member"
	"github.com/cluster-chandler/chandler/internal/plan"
	"github.com/cluster-chandler/chandler/internal/stack"
	"github.com/cluster-chandler/chandler/test/apiserver"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/suite"
)

var server *apiserver.Server

func TestMain(m *testing.M) {
	suite.RunOnServer(m, "addonplan", &server, "addonplans", "addonstacks", "clusteraddons")
}

// clusters answer what the test says.
type clusters struct {
	mu     sync.Mutex
	asked  []string
	slow   []string
	answer func(ctx context.Context, r plan.Request) ([]plan.Addon, error)
}

func (c *clusters) Preview(ctx context.Context, r plan.Request) ([]plan.Addon, error) {
	c.mu.Lock()
	c.asked = append(c.asked, r.Cluster.Name)
	c.mu.Unlock()
	return c.answer(ctx, r)
}

func (c *clusters) IsSlow(key client.ObjectKey) bool { return slices.Contains(c.slow, key.Name) }

// foresee returns a function that foresees a revision, or the error.
func foresee(err error) func(context.Context, *addonsv1.AddonStack, *unstructured.Unstructured, []appsv1.ControllerRevision, func()) (*appsv1.ControllerRevision, error) {
	return func(_ context.Context, edited *addonsv1.AddonStack, _ *unstructured.Unstructured, _ []appsv1.ControllerRevision, _ func()) (*appsv1.ControllerRevision, error) {
		return stack.Snapshot(edited, []byte(`{"clusterSelector":{"matchLabels":{"env":"prod"}},"addons":[{"name":"web","chart":{"path":"web"}}]}`), 0), err
	}
}

// removals says that one cluster loses add-ons.
func removals(context.Context, client.ObjectKey, string, *addonsv1.AddonStackSpec) (*addonsv1.PlanRemovals, error) {
	return &addonsv1.PlanRemovals{Clusters: 1, Of: 12, Allowed: 1}, nil
}

// world is a namespace with an AddonStack, a revision of it, and Clusters.
type world struct {
	*testing.T
	*addonplan.Reconciler
	clusters  *clusters
	events    *events.FakeRecorder
	clock     *clocktesting.FakeClock
	namespace string
	stack     *addonsv1.AddonStack
	revision  *appsv1.ControllerRevision
}

func newWorld(t *testing.T, fleetSize int) *world {
	t.Helper()
	w := &world{T: t, clusters: &clusters{}, events: events.NewFakeRecorder(100), clock: clocktesting.NewFakeClock(time.Now())}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "plans-"}}
	must.Succeed(t, server.Create(t.Context(), namespace))
	w.namespace = namespace.Name
	w.clusters.answer = func(context.Context, plan.Request) ([]plan.Addon, error) { return changes("b"), nil }
	w.Reconciler = &addonplan.Reconciler{
		Client: server, Recorder: w.events, Members: &member.Inventory{Client: server, Fleet: fleet.NewProvider(fleet.Options{})},
		Clusters: w.clusters, Foresee: foresee(nil), Removals: removals, IsBusy: func() bool { return false }, Clock: w.clock,
		Statuses: management.Statuses{Client: server, Clock: w.clock}, Running: budget.New(addonplan.Running),
	}
	w.stack = &addonsv1.AddonStack{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "platform"}, Spec: addonsv1.AddonStackSpec{
		ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"env": "prod"}},
		Addons:          []addonsv1.Addon{{Name: "web", Chart: addonsv1.ChartSource{Path: "web"}}},
	}}
	must.Succeed(t, server.Create(t.Context(), w.stack))
	w.stack.Status.ObservedGeneration = w.stack.Generation
	must.Succeed(t, server.Status().Update(t.Context(), w.stack))
	w.revision = w.keep(`{"clusterSelector":{"matchLabels":{"env":"prod"}},"addons":[{"name":"web","chart":{"path":"web"}}]}`, 1)
	for i := range fleetSize {
		w.join(fmt.Sprintf("prod-%02d", i))
	}
	return w
}

// keep keeps a spec as a revision.
func (w *world) keep(content string, number int64) *appsv1.ControllerRevision {
	w.Helper()
	is := stack.Snapshot(w.stack, []byte(content), number)
	must.Succeed(w, server.Create(w.Context(), is))
	return is
}

func (w *world) join(name string) {
	w.Helper()
	must.Succeed(w, server.Create(w.Context(), &clusterv1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name, Labels: map[string]string{"env": "prod", "name": name}},
		Spec:       clusterv1.ClusterSpec{ControlPlaneRef: clusterv1.ContractVersionedObjectReference{APIGroup: "controlplane.cluster.x-k8s.io", Kind: "ControlPlane", Name: name}},
	}))
}

// plan makes a plan.
func (w *world) plan(name string, spec addonsv1.AddonPlanSpec) *addonsv1.AddonPlan {
	w.Helper()
	if spec.StackName == "" {
		spec.StackName = "platform"
	}
	p := &addonsv1.AddonPlan{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}, Spec: spec}
	must.Succeed(w, server.Create(w.Context(), p))
	return p
}

// reconcile reconciles a plan, and reads it.
func (w *world) reconcile(p *addonsv1.AddonPlan) ctrl.Result {
	w.Helper()
	request := mcreconcile.Request{}
	request.NamespacedName = client.ObjectKeyFromObject(p)
	result, err := w.Reconcile(w.Context(), request)
	must.Succeed(w, err)
	if err := server.Get(w.Context(), request.NamespacedName, p); !apierrors.IsNotFound(err) {
		must.Succeed(w, err)
	}
	return result
}

func (w *world) expect(p *addonsv1.AddonPlan, phase addonsv1.PlanPhase, condition, reason string) {
	w.Helper()
	if is := conditions.Get(p, condition); p.Status.Phase != phase || is == nil || is.Reason != reason {
		w.Errorf("plan %s is %s, and %s is %+v; want %s, %s", p.Name, p.Status.Phase, condition, is, phase, reason)
	}
}

func changes(value string) []plan.Addon {
	return []plan.Addon{{
		PlanAddon: addonsv1.PlanAddon{Namespace: "web", Name: "web", State: plan.Changed},
		Changes: []plan.Change{{
			PlanChange: addonsv1.PlanChange{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "web", Name: "web", Action: plan.Update, Restarts: true},
			Altered:    []plan.Field{plan.FieldOf(".spec.image", plan.ByManifest, "a", value, true, nil)},
		}},
	}}
}

// A plan asks each cluster that the target selects or leaves, those that were slow last, and writes nothing but its status.
func TestPlanOfAFleet(t *testing.T) {
	w := newWorld(t, 12)
	w.join("leaves")
	must.Succeed(t, server.Patch(t.Context(), &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "leaves"}}, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"env":"test"}}}`))))
	must.Succeed(t, server.Create(t.Context(), &addonsv1.ClusterAddon{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "leaves"},
		Spec: addonsv1.ClusterAddonSpec{ClusterName: "leaves", Stacks: []addonsv1.StackRevision{{Name: "platform", Revision: w.revision.Name}}}}))
	w.clusters.slow = []string{"prod-00"}
	w.clusters.answer = func(_ context.Context, r plan.Request) ([]plan.Addon, error) {
		if r.Stack != "platform" || r.Revision != w.revision.Name || (r.Spec == nil) != (r.Cluster.Name == "leaves") {
			t.Errorf("asked %+v", r)
		}
		switch r.Cluster.Name {
		case "prod-00":
			return plan.Silent(), nil
		case "prod-01":
			return nil, errors.New("sentinel-5f1c")
		case "prod-02":
			return []plan.Addon{plan.In(plan.Same, "", "")}, nil
		}
		return changes(r.Cluster.Name), nil
	}
	p := w.plan("fleet", addonsv1.AddonPlanSpec{})
	w.reconcile(p)
	w.expect(p, addonsv1.PlanDone, addonsv1.CompleteCondition, addonsv1.PlanCompleteReason)
	w.expect(p, addonsv1.PlanDone, addonsv1.StaleCondition, addonsv1.PlanCurrentReason)
	s := &p.Status
	must.Equal(t, addonsv1.PlanClusters{Total: 13, Same: 1, Changed: 10, NotChecked: 1, Unreachable: 1}, s.Clusters)
	if s.Revision != w.revision.Name || s.Restarts != 10 || len(s.Groups) != 4 || s.Groups[0].Clusters != 10 || !s.Groups[0].Changes[0].Fields[0].Varies || s.Removals == nil {
		t.Errorf("the status is %+v", s)
	}
	if at := slices.Index(w.clusters.asked, "prod-00"); at < 9 { // the last four are asked at once
		t.Errorf("a slow cluster is asked as number %d", at)
	}
	if text := fmt.Sprintf("%+v", p); strings.Contains(text, "sentinel") {
		t.Errorf("an error that may say anything is in %s", text)
	}
	if note := <-w.events.Events; !strings.HasPrefix(note, "Normal PlanDone Of 13 clusters") {
		t.Errorf("told is %q", note)
	}
}

// A selector may name clusters, and the values of releases that are taken over are asked for.
func TestPlanOfNamedClusters(t *testing.T) {
	w := newWorld(t, 3)
	w.clusters.answer = func(_ context.Context, r plan.Request) ([]plan.Addon, error) {
		if !r.RecordedValues {
			t.Errorf("asked %+v", r)
		}
		return changes("b"), nil
	}
	p := w.plan("named", addonsv1.AddonPlanSpec{RecordedValues: true, ClusterSelector: &metav1.LabelSelector{
		MatchExpressions: []metav1.LabelSelectorRequirement{{Key: clusterv1.ClusterNameLabel, Operator: metav1.LabelSelectorOpIn, Values: []string{"prod-01", "prod-02", "elsewhere"}}},
	}})
	w.reconcile(p)
	w.expect(p, addonsv1.PlanDone, addonsv1.CompleteCondition, addonsv1.PlanCompleteReason)
	slices.Sort(w.clusters.asked)
	must.Equal(t, []string{"prod-01", "prod-02"}, w.clusters.asked)
}

// What can't be planned says why, and what isn't there yet is waited for.
func TestPlansWithoutAnAnswer(t *testing.T) {
	w := newWorld(t, 1)
	template := func(text string) *apiextensionsv1.JSON { return &apiextensionsv1.JSON{Raw: []byte(text)} }
	for name, tc := range map[string]struct {
		spec   addonsv1.AddonPlanSpec
		reason string
	}{
		"no-stack":    {addonsv1.AddonPlanSpec{StackName: "other"}, addonsv1.PlanStackNotFoundReason},
		"no-revision": {addonsv1.AddonPlanSpec{Revision: "platform-0"}, addonsv1.PlanRevisionNotFoundReason},
		"unknown":     {addonsv1.AddonPlanSpec{Template: template(`{"clusterSelector":{},"addonz":[]}`)}, addonsv1.PlanInvalidTemplateReason},
		"no-spec":     {addonsv1.AddonPlanSpec{Template: template(`{"addons":"web"}`)}, addonsv1.PlanInvalidTemplateReason},
		"cycle":       {addonsv1.AddonPlanSpec{Template: template(`{"clusterSelector":{},"addons":[{"name":"a","chart":{"path":"a"},"dependsOn":["a"]}]}`)}, addonsv1.DependencyCycleReason},
		"selector":    {addonsv1.AddonPlanSpec{ClusterSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Is"}}}}, addonsv1.InvalidSelectorReason},
	} {
		p := w.plan(name, tc.spec)
		w.reconcile(p)
		w.expect(p, addonsv1.PlanFailed, addonsv1.CompleteCondition, tc.reason)
	}
	waits := failure.New(failure.ArtifactPending, "it is asked")
	waits.Wait = true
	w.Foresee = foresee(waits)
	p := w.plan("source", addonsv1.AddonPlanSpec{Template: template(`{"clusterSelector":{},"addons":[]}`)})
	if result := w.reconcile(p); result.RequeueAfter == 0 {
		t.Error("a plan that waits for a source isn't looked at again")
	}
	w.expect(p, addonsv1.PlanPending, addonsv1.CompleteCondition, addonsv1.PlanWaitingReason)
	w.Foresee = foresee(nil)
	w.reconcile(p)
	w.expect(p, addonsv1.PlanDone, addonsv1.CompleteCondition, addonsv1.PlanCompleteReason)

	w.stack.Spec.Addons[0].Chart.Path = "web-2"
	must.Succeed(t, server.Update(t.Context(), w.stack))
	edited := w.plan("edited", addonsv1.AddonPlanSpec{})
	w.reconcile(edited)
	w.expect(edited, addonsv1.PlanPending, addonsv1.CompleteCondition, addonsv1.PlanWaitingReason)
	if len(w.clusters.asked) != 1 {
		t.Errorf("asked are %v", w.clusters.asked)
	}
}

// A plan that can't begin fails when its time to live is over. One of a paused stack is of the spec as it is written.
func TestPlansThatCannotBegin(t *testing.T) {
	w := newWorld(t, 1)
	w.stack.Spec.Addons[0].Chart.Path = "web-2"
	must.Succeed(t, server.Update(t.Context(), w.stack)) // no instance observes that
	p := w.plan("unobserved", addonsv1.AddonPlanSpec{TTLSecondsAfterFinished: new(int32(60))})
	if result := w.reconcile(p); result.RequeueAfter <= 0 || result.RequeueAfter > time.Minute {
		t.Errorf("it is looked at again after %s", result.RequeueAfter)
	}
	w.expect(p, addonsv1.PlanPending, addonsv1.CompleteCondition, addonsv1.PlanWaitingReason)
	w.clock.Step(time.Minute + time.Second)
	w.reconcile(p)
	w.expect(p, addonsv1.PlanFailed, addonsv1.CompleteCondition, addonsv1.PlanWaitingReason)
	w.clock.Step(time.Minute + time.Second)
	w.reconcile(p)
	if err := server.Get(t.Context(), client.ObjectKeyFromObject(p), p); !apierrors.IsNotFound(err) {
		t.Errorf("it is kept after its time: %v", err)
	}

	metav1.SetMetaDataAnnotation(&w.stack.ObjectMeta, clusterv1.PausedAnnotation, "")
	w.stack.Finalizers = []string{"test/kept"}
	must.Succeed(t, server.Update(t.Context(), w.stack))
	p = w.plan("paused", addonsv1.AddonPlanSpec{})
	w.reconcile(p)
	w.expect(p, addonsv1.PlanDone, addonsv1.CompleteCondition, addonsv1.PlanCompleteReason)
	must.Succeed(t, server.Delete(t.Context(), w.stack.DeepCopy()))
	p = w.plan("deleted", addonsv1.AddonPlanSpec{})
	w.reconcile(p)
	w.expect(p, addonsv1.PlanFailed, addonsv1.CompleteCondition, addonsv1.PlanStackNotFoundReason)
	must.Succeed(t, server.Get(t.Context(), client.ObjectKeyFromObject(w.stack), w.stack))
	w.stack.Finalizers = nil
	must.Succeed(t, server.Update(t.Context(), w.stack))
}

// A cluster whose answers lead to a fault of the program ends neither the process nor the plan.
func TestPlansOutliveAPanic(t *testing.T) {
	w := newWorld(t, 3)
	w.clusters.answer = func(_ context.Context, r plan.Request) ([]plan.Addon, error) {
		if r.Cluster.Name == "prod-01" {
			panic("an unexpected answer")
		}
		return changes("b"), nil
	}
	p := w.plan("hostile", addonsv1.AddonPlanSpec{})
	w.reconcile(p)
	w.expect(p, addonsv1.PlanDone, addonsv1.CompleteCondition, addonsv1.PlanCompleteReason)
	if c := p.Status.Clusters; c.NotChecked != 1 || c.Changed != 2 {
		t.Errorf("clusters are %+v", c)
	}
}

// A plan is stale once its target, its inputs or its clusters are others, and current once they are as they were.
func TestPlansGoStale(t *testing.T) {
	w := newWorld(t, 2)
	p, of := w.plan("target", addonsv1.AddonPlanSpec{}), w.plan("revision", addonsv1.AddonPlanSpec{Revision: w.revision.Name})
	both := func(target, revision string) {
		t.Helper()
		w.reconcile(p)
		w.reconcile(of)
		w.expect(p, addonsv1.PlanDone, addonsv1.StaleCondition, target)
		w.expect(of, addonsv1.PlanDone, addonsv1.StaleCondition, revision)
	}
	both(addonsv1.PlanCurrentReason, addonsv1.PlanCurrentReason)
	both(addonsv1.PlanCurrentReason, addonsv1.PlanCurrentReason)
	w.join("prod-99")
	both(addonsv1.PlanClustersChangedReason, addonsv1.PlanClustersChangedReason)
	must.Succeed(t, server.Delete(t.Context(), &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "prod-99"}}))
	newer := w.keep(`{"clusterSelector":{"matchLabels":{"env":"prod"}},"addons":[]}`, 2)
	both(addonsv1.PlanTargetChangedReason, addonsv1.PlanCurrentReason)
	must.Succeed(t, server.Delete(t.Context(), newer))
	metav1.SetMetaDataAnnotation(&w.revision.ObjectMeta, addonsv1.RolloutInputsReplacedAnnotation, "Secret/values")
	must.Succeed(t, server.Update(t.Context(), w.revision))
	both(addonsv1.PlanInputsChangedReason, addonsv1.PlanInputsChangedReason)
	must.Succeed(t, server.Delete(t.Context(), w.revision))
	both(addonsv1.PlanTargetChangedReason, addonsv1.PlanTargetChangedReason)
	if len(w.clusters.asked) != 4 {
		t.Errorf("asked are %v", w.clusters.asked)
	}
}

// Five plans of a namespace are worked on at once, others wait, and one that is deleted ends. A finished one is deleted in time.
func TestPlansTakeTurns(t *testing.T) {
	w := newWorld(t, 1)
	begun, end := make(chan struct{}, 10), make(chan struct{})
	w.clusters.answer = func(context.Context, plan.Request) ([]plan.Addon, error) {
		begun <- struct{}{}
		<-end
		return changes("b"), nil
	}
	var running sync.WaitGroup
	var plans []*addonsv1.AddonPlan
	for i := range 5 {
		plans = append(plans, w.plan(fmt.Sprintf("plan-%d", i), addonsv1.AddonPlanSpec{TTLSecondsAfterFinished: new(int32(60))}))
		running.Go(func() { w.reconcile(plans[i]) })
	}
	for range 5 {
		<-begun
	}
	sixth := w.plan("sixth", addonsv1.AddonPlanSpec{})
	w.reconcile(sixth)
	w.expect(sixth, addonsv1.PlanPending, addonsv1.CompleteCondition, addonsv1.PlanWaitingReason)
	must.Succeed(t, server.Delete(t.Context(), plans[0].DeepCopy()))
	close(end)
	running.Wait()
	for _, p := range plans[1:] {
		w.expect(p, addonsv1.PlanDone, addonsv1.CompleteCondition, addonsv1.PlanCompleteReason)
	}
	w.reconcile(sixth)
	w.expect(sixth, addonsv1.PlanDone, addonsv1.CompleteCondition, addonsv1.PlanCompleteReason)

	w.clock.Step(time.Minute + time.Second)
	w.reconcile(plans[1])
	if err := server.Get(t.Context(), client.ObjectKeyFromObject(plans[1]), plans[1]); !apierrors.IsNotFound(err) {
		t.Errorf("a plan is kept after its time: %v", err)
	}
	w.reconcile(sixth)
	w.expect(sixth, addonsv1.PlanDone, addonsv1.CompleteCondition, addonsv1.PlanCompleteReason)
}

// A plan waits for other work, and one whose process ended begins again.
func TestPlansComeLastAndBeginAgain(t *testing.T) {
	w := newWorld(t, 1)
	looks := make(chan struct{})
	w.IsBusy = func() bool {
		_, over := <-looks
		return over
	}
	p := w.plan("last", addonsv1.AddonPlanSpec{})
	p.Status = addonsv1.AddonPlanStatus{Phase: addonsv1.PlanRunning, Revision: "platform-0", Clusters: addonsv1.PlanClusters{Total: 7, Changed: 3}}
	must.Succeed(t, server.Status().Update(t.Context(), p))
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.reconcile(p)
	}()
	for range 3 {
		looks <- struct{}{}
		for !w.clock.HasWaiters() {
			time.Sleep(time.Millisecond)
		}
		if len(w.clusters.asked) > 0 {
			t.Error("a cluster is asked while there is other work")
		}
		w.clock.Step(time.Second)
	}
	close(looks)
	<-done
	w.expect(p, addonsv1.PlanDone, addonsv1.CompleteCondition, addonsv1.PlanCompleteReason)
	must.Equal(t, addonsv1.PlanClusters{Total: 1, Changed: 1}, p.Status.Clusters)
	must.Equal(t, w.revision.Name, p.Status.Revision)
}

// A plan that never finds a moment without other work fails after its time to live.
func TestPlansThatNeverRunEnd(t *testing.T) {
	w := newWorld(t, 1)
	p := w.plan("late", addonsv1.AddonPlanSpec{TTLSecondsAfterFinished: new(int32(60))})
	w.IsBusy = func() bool {
		w.clock.Step(time.Minute)
		return true
	}
	w.reconcile(p)
	w.expect(p, addonsv1.PlanFailed, addonsv1.CompleteCondition, addonsv1.PlanWaitingReason)
	must.Equal(t, 0, len(w.clusters.asked))
}
