// SPDX-License-Identifier: Apache-2.0

package browser_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	helmrelease "helm.sh/helm/v4/pkg/release/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/internal/rollout"
	"github.com/cluster-chandler/chandler/test/must"
)

// hostile runs a script if it isn't escaped, turns a line around, and is a word that fits into no line.
var hostile = "<script>window.ran=1</script><img src=x onerror=window.ran=1>\"'\u202e\u2066reversed " + strings.Repeat("W", 850)

// fleet is a namespace with an AddonStack whose rollout is under way, and clusters that have it.
type fleet struct {
	namespace string
	clusters  int
	addons    []string
	message   string // of add-ons that failed
	word      string // in conditions of the stack, which may be long
	version   string
}

func ago(d time.Duration) metav1.Time {
	return metav1.NewTime(time.Now().Add(-d).Truncate(time.Second))
}

func condition(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message, LastTransitionTime: ago(9 * time.Minute)}
}

// make creates all objects of the fleet.
func (f *fleet) make(t *testing.T) {
	t.Helper()
	create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.namespace}})
	f.makeStack(t)
	var workers sync.WaitGroup
	for worker := range 8 {
		workers.Go(func() {
			for i := worker; i < f.clusters; i += 8 {
				f.makeCluster(t, i)
			}
		})
	}
	workers.Wait()
	pi := &addonsv1.ProviderInstance{ObjectMeta: f.named("chandler")}
	pi.Spec = addonsv1.ProviderInstanceSpec{Version: "v0.9.0", APIVersions: []string{"v1beta1"},
		Holder: "chandler-0", Claim: addonsv1.ScopeClaiming, ExpirySeconds: 60}
	pi.Status.HeartbeatTime = metav1.NowMicro()
	pi.Status.Conditions = []metav1.Condition{condition(addonsv1.ReadyCondition, metav1.ConditionFalse, "NotReady", f.message)}
	create(t, pi, f.plan(), &eventsv1.Event{ObjectMeta: f.named("failed"), EventTime: metav1.NowMicro(), Type: "Warning",
		Reason: "AddonFailed", Note: f.message, Action: "Deliver",
		ReportingController: "chandler", ReportingInstance: "chandler-0",
		Regarding: corev1.ObjectReference{APIVersion: addonsv1.GroupVersion.String(), Kind: "ClusterAddon", Namespace: f.namespace, Name: f.cluster(3)}})
}

// plan returns a plan of the stack, in which the words of the fleet are wherever words of clusters may be.
func (f *fleet) plan() *addonsv1.AddonPlan {
	is := &addonsv1.AddonPlan{ObjectMeta: f.named("platform"), Spec: addonsv1.AddonPlanSpec{StackName: "platform"}}
	text := f.message[:min(len(f.message), 500)]
	is.Status = addonsv1.AddonPlanStatus{Phase: addonsv1.PlanDone, Revision: "platform-2", Finished: ago(time.Minute),
		Conditions: []metav1.Condition{condition(addonsv1.CompleteCondition, metav1.ConditionTrue, addonsv1.PlanCompleteReason, f.word)},
		Groups: []addonsv1.PlanGroup{{Clusters: 2, Examples: []string{f.cluster(0), f.cluster(1)},
			Addons: []addonsv1.PlanAddon{{Namespace: "kube-system", Name: f.addons[0], State: "Changed", Message: text}},
			Changes: []addonsv1.PlanChange{{Addon: f.addons[0], Kind: "Deployment", Name: f.addons[0], Action: "Change", Message: text,
				Fields: []addonsv1.PlanField{{Path: text, Cause: "Manifest", New: text[:min(len(text), 100)]}}}}}}}
	return is
}

// install writes a record of each add-on as of a workload cluster, which is the management cluster, with a kubeconfig Secret that leads to it.
func (f *fleet) install(t *testing.T, cluster string) {
	kubeconfig, err := os.ReadFile(world.kubeconfig)
	must.Succeed(t, err)
	secret := &corev1.Secret{ObjectMeta: f.named(cluster + "-kubeconfig"), Data: map[string][]byte{"value": kubeconfig}}
	must.Succeed(t, world.hub.Create(t.Context(), secret))
	for _, name := range f.addons {
		r := &record.Record{State: &record.State{Format: 1}}
		r.Release, r.Revision, r.Status = record.Release{Namespace: "kube-system", Name: name}, 1, record.StatusDeployed
		r.Digest, r.Owner, r.Stack, r.StackRevision, r.Chart = "sha256:1", f.namespace+"/"+cluster, "platform", "platform-2", name
		r.Helm = &helmrelease.Release{Name: name, Namespace: r.Namespace, Version: 1, Info: &helmrelease.Info{Status: "deployed"},
			Config: map[string]any{"text": f.message, f.message: "text"}}
		r.Seal("salt")
		store := &record.Store{Client: world.hub, Writer: world.hub, Release: r.Release, Clock: clock.RealClock{}}
		must.Succeed(t, store.Create(t.Context(), r))
	}
}

func (f *fleet) named(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: f.namespace, Name: name}
}

var regions = []string{"eu", "us", "asia"}

func (f *fleet) cluster(i int) string { return fmt.Sprintf("%s-%03d", regions[i%3], i/3) }

// makeStack creates the stack and two revisions of it: the second one is on the clusters of the first wave, and on some of the next.
func (f *fleet) makeStack(t *testing.T) {
	s := &addonsv1.AddonStack{ObjectMeta: f.named("platform")}
	s.Spec.ClusterSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"env": "prod"}}
	for i, name := range f.addons {
		a := addonsv1.Addon{Name: name}
		a.Chart = addonsv1.ChartSource{Version: f.version, Helm: &addonsv1.HelmSource{URL: "https://charts.example.org", Chart: name}}
		if i > 0 {
			a.DependsOn = f.addons[:1]
		}
		s.Spec.Addons = append(s.Spec.Addons, a)
	}
	of := func(label, value string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{label: value}}
	}
	s.Spec.Rollout = &addonsv1.Rollout{Waves: []addonsv1.RolloutWave{{Name: "canary", ClusterSelector: of("canary", "yes")},
		{Name: "europe", ClusterSelector: of("region", "eu")}, {Name: "world", ClusterSelector: of("env", "prod"), Approval: addonsv1.RolloutApprovalRequired}}}
	third := int32(f.clusters / 3)
	s.Status = addonsv1.AddonStackStatus{
		LatestRevision: "platform-2",
		Clusters:       &addonsv1.ClusterCounts{Total: int32(f.clusters), Ready: int32(f.clusters) - 3, Failed: 1, Waiting: 2},
		Rollout: &addonsv1.RolloutStatus{Revision: "platform-2", Completed: "platform-1", Phase: addonsv1.RolloutProgressing,
			Since: ago(time.Hour), Wave: "europe", WavesDone: 1},
		Conditions: []metav1.Condition{condition(addonsv1.ReadyCondition, metav1.ConditionFalse, "NotReady", f.word)},
		Sources: []addonsv1.StackSource{{Addon: f.addons[0], Address: "https://charts.example.org/" + f.addons[0], Conditions: []metav1.Condition{
			condition(addonsv1.SourceAvailableCondition, metav1.ConditionFalse, "ArtifactNotFound", f.message)}}},
		History: []addonsv1.StackChange{{Time: ago(time.Hour), Cause: addonsv1.ChangeEdited, By: "anna", From: "platform-1", To: "platform-2",
			Versions: f.addons[0] + " 1.0.0 -> " + f.version}},
	}
	s.Status.Rollout.Waves = []addonsv1.RolloutWaveStatus{
		{Name: "canary", Total: 2, Updated: 2, Done: 2}, {Name: "europe", Total: third, Updated: 2, Failed: 1}, {Name: "world", Total: third},
	}
	spec := s.Spec.DeepCopy()
	create(t, s)
	for number, version := range []string{"1.0.0", f.version} {
		spec.Rollout, spec.Addons[0].Chart.Version = nil, version
		data, err := json.Marshal(spec)
		must.Succeed(t, err)
		r := &appsv1.ControllerRevision{ObjectMeta: f.named(fmt.Sprintf("platform-%d", number+1)), Revision: int64(number + 1),
			Data: runtime.RawExtension{Raw: data}}
		r.Labels = map[string]string{addonsv1.StackNameLabel: s.Name}
		r.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(s, addonsv1.GroupVersion.WithKind("AddonStack"))}
		attempt := &rollout.Attempt{Number: r.Revision, Cause: rollout.Edited, Started: ago(time.Hour).Time, Waves: s.Spec.Rollout.Waves}
		if number == 0 {
			attempt.Completed = ago(24 * time.Hour).Time
		}
		attempt.Note(r)
		must.Succeed(t, world.hub.Create(t.Context(), r))
	}
}

// makeCluster creates a cluster with its ClusterAddon. Of each hundred, one each fails, isn't reached, upgrades and holds a removal.
func (f *fleet) makeCluster(t *testing.T, i int) {
	labels := map[string]string{"env": "prod", "region": regions[i%3]}
	if i < 2 {
		labels["canary"] = "yes"
	}
	c := &clusterv1.Cluster{ObjectMeta: f.named(f.cluster(i))}
	c.Labels, c.Spec.ControlPlaneEndpoint = labels, clusterv1.APIEndpoint{Host: "10.0.0.1", Port: 6443}
	revision, version, state := "platform-1", "1.0.0", addonsv1.StackReady
	if i < 2 || i == 3 || i == 6 {
		revision, version = "platform-2", f.version
	}
	ca := &addonsv1.ClusterAddon{ObjectMeta: f.named(c.Name)}
	ca.Spec = addonsv1.ClusterAddonSpec{ClusterName: c.Name, Stacks: []addonsv1.StackRevision{{Name: "platform", Revision: revision}}}
	reachable, ready := condition(addonsv1.ClusterReachableCondition, metav1.ConditionTrue, "Reachable", ""), len(f.addons)
	for _, name := range f.addons {
		ca.Status.Addons = append(ca.Status.Addons, addonsv1.AddonStatus{Name: name, Namespace: "kube-system", Stack: "platform",
			Phase: addonsv1.AddonReady, Since: ago(time.Hour), Version: f.version, Objects: &addonsv1.ObjectCounts{Total: 20, Ready: 20}})
	}
	first, last := &ca.Status.Addons[0], &ca.Status.Addons[ready-1]
	first.Version = version
	switch i % 97 {
	case 3:
		state, last.Phase, last.Reason, last.Message = addonsv1.StackFailed, addonsv1.AddonFailed, "HookFailed", f.message
	case 5:
		reachable = condition(addonsv1.ClusterReachableCondition, metav1.ConditionFalse, "Unreachable", "https://10.0.0.1:6443: connection refused")
	case 6:
		state, first.Phase = addonsv1.StackProgressing, addonsv1.AddonUpgrading
	case 7:
		ca.Spec.Stacks[0].HeldRemoval = &addonsv1.HeldRemoval{Cause: addonsv1.RemovalAddonsDropped, Confirmation: "a", Addons: f.addons[1:2]}
	}
	for _, a := range ca.Status.Addons {
		if a.Phase != addonsv1.AddonReady {
			ready--
		}
	}
	ca.Status.ReadyAddons = fmt.Sprintf("%d/%d", ready, len(f.addons))
	is := condition(addonsv1.ReadyCondition, metav1.ConditionTrue, "Ready", "")
	if ready < len(f.addons) || reachable.Status != metav1.ConditionTrue {
		is.Status = metav1.ConditionFalse
	}
	ca.Status.Conditions = []metav1.Condition{is, reachable}
	ca.Status.Stacks = []addonsv1.StackStatus{{Name: "platform", Revision: revision, State: state,
		Since: ago(20 * time.Minute), Started: ago(25 * time.Minute)}}
	ca.Status.History = []addonsv1.AddonChange{{Time: ago(time.Hour), Addon: first.Name, Namespace: "kube-system", Stack: "platform",
		Cause: addonsv1.ChangeEdited, By: "anna", From: "1.0.0", To: version}}
	create(t, c, ca)
}

// create creates objects with their statuses.
func create(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, o := range objects {
		status := o.DeepCopyObject().(client.Object)
		if err := world.hub.Create(t.Context(), o); err != nil {
			t.Error(err)
			continue
		}
		switch o.(type) {
		case *addonsv1.AddonStack, *addonsv1.AddonPlan, *addonsv1.ClusterAddon, *addonsv1.ProviderInstance:
			status.SetResourceVersion(o.GetResourceVersion())
			if err := world.hub.Status().Update(t.Context(), status); err != nil {
				t.Error(err)
			}
		}
	}
}
