// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/rollout"
	"github.com/cluster-chandler/chandler/internal/stack"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/virtualcluster"
)

// rollingChart generates a text once, and can't be applied where values say so.
var rollingChart = chart{
	"templates/text.yaml": configMap("{{ .Release.Name }}", "{{ .Values.text | quote }}"),
	"templates/made.yaml": configMap("{{ .Release.Name }}-made", "{{ randAlphaNum 16 }}"),
	"templates/bad.yaml":  "{{ if .Values.bad }}\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: Not_A_Name}\n{{ end }}\n",
}

// rolling is a fleet of small clusters, named NAME-0 and so on, on which stack "platform" runs with the text "one".
type rolling struct {
	*tenant
	authority *virtualcluster.Authority
	path      string
	clients   map[string]client.Client // of the clusters
	name      string                   // of the clusters, as they share an API server with those of other tests
	// isShared says that several instances look at the stack, some of them maybe not at its newest spec.
	isShared bool
}

func newRolling(t *testing.T, name string, clusters int) *rolling {
	t.Helper()
	tn := newTenant(t)
	r := &rolling{
		tenant: tn, authority: virtualcluster.NewAuthority(t), path: tn.writeChart("settings", "1.0.0", rollingChart), name: name,
		clients: map[string]client.Client{},
	}
	tn.startManager()
	for i := range clusters {
		r.join(i)
	}
	tn.makeStack("platform", labels("env=prod"), r.addon("settings", r.path, func(a *addonsv1.Addon) { a.ValuesTemplate = valuesFor("one", "none") }))
	r.awaitReady("platform", "without a rollout all clusters get it at once")
	for name := range r.clients {
		r.pass(name, addonsv1.DefaultMinReady)
	}
	r.awaitCompleted(r.latestRevision("platform"))
	return r
}

// awaitCompleted waits until a revision is noted as completed.
func (r *rolling) awaitCompleted(revision string) {
	r.t.Helper()
	poll(r.t, patience, "all clusters were ready at it for long enough", func() error {
		if is := r.attempt(revision); is.Completed.IsZero() {
			return fmt.Errorf("%+v", is)
		}
		return nil
	})
}

// attempt returns how far the attempt at a revision is.
func (r *rolling) attempt(revision string) rollout.Attempt {
	r.t.Helper()
	return rollout.AttemptOf(r.revision(revision))
}

// revision reads a revision.
func (r *rolling) revision(name string) *appsv1.ControllerRevision {
	r.t.Helper()
	obj := &appsv1.ControllerRevision{}
	must.Succeed(r.t, world.hub.Get(r.t.Context(), r.key(name), obj))
	return obj
}

// changeStack changes a stack. Clusters are done as soon as they are ready, unless the change says otherwise.
func (r *rolling) changeStack(name string, change func(*addonsv1.AddonStackSpec)) {
	r.t.Helper()
	r.tenant.changeStack(name, func(spec *addonsv1.AddonStackSpec) {
		if change(spec); spec.Rollout != nil && spec.Rollout.MinReady == nil {
			spec.Rollout.MinReady = &metav1.Duration{}
		}
	})
}

// valuesFor is a template of values: they are bad on the clusters with a label.
func valuesFor(text, bad string) string {
	return fmt.Sprintf("text: %s\nbad: {{ hasKey .Cluster.metadata.labels %q }}\n", text, bad)
}

// join makes a cluster, and returns its name.
func (r *rolling) join(i int) string {
	r.t.Helper()
	name := fmt.Sprint(r.name, "-", i)
	kubeconfig := r.authority.New(r.t, r.userOn(workloadServer(r.t, 1), name), name).Kubeconfig
	r.clients[name] = clientFor(r.t, kubeconfig)
	r.writeKubeconfig(name, kubeconfig)
	r.makeClusterObject(name, labels("env=prod"))
	return name
}

// edit gives the stack another text, bad on the clusters with a label.
func (r *rolling) edit(text, bad string, more ...func(*addonsv1.AddonStackSpec)) {
	r.t.Helper()
	r.changeStack("platform", func(spec *addonsv1.AddonStackSpec) {
		spec.Addons[0].ValuesTemplate = valuesFor(text, bad)
		for _, m := range more {
			m(spec)
		}
	})
}

// awaitPhase waits until the stack's rollout is in a phase, with a number of clusters at the target.
func (r *rolling) awaitPhase(phase addonsv1.RolloutPhase, updated int32, reason string) *addonsv1.AddonStack {
	r.t.Helper()
	s := r.newStack("platform", nil)
	poll(r.t, patience, reason, func() error {
		if err := world.hub.Get(r.t.Context(), r.key("platform"), s); err != nil {
			return err
		}
		is := ptr.Deref(s.Status.Rollout, addonsv1.RolloutStatus{})
		counts := ptr.Deref(s.Status.Clusters, addonsv1.ClusterCounts{})
		if is.Phase != phase || is.Revision == "" || ptr.Deref(counts.Updated, -1) != updated || !r.isShared && s.Status.ObservedGeneration != s.Generation {
			return fmt.Errorf("%+v, clusters %+v, updated %d: %s", is, counts, ptr.Deref(counts.Updated, -1), conditions.GetMessage(s, addonsv1.RolledOutCondition))
		}
		return nil
	})
	return s
}

// at returns the clusters that are assigned a revision.
func (r *rolling) at(revision string) (names []string) {
	r.t.Helper()
	all := &addonsv1.ClusterAddonList{}
	must.Succeed(r.t, world.hub.List(r.t.Context(), all, client.InNamespace(r.namespace)))
	for i := range all.Items {
		if stack.AssignedRevision(all.Items[i].Spec.Stacks, "platform") == revision {
			names = append(names, all.Items[i].Name)
		}
	}
	slices.Sort(names)
	return names
}

// marks returns the annotations of a revision.
func (r *rolling) marks(revision string) map[string]string {
	r.t.Helper()
	return r.revision(revision).Annotations
}

// annotate sets an annotation of an object, or takes it off.
func (r *rolling) annotate(obj client.Object, name, annotation, value string) {
	r.t.Helper()
	obj.SetNamespace(r.namespace)
	obj.SetName(name)
	text := fmt.Sprintf("%q", value)
	if value == "" {
		text = "null"
	}
	patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%s}}}`, annotation, text))
	must.Succeed(r.t, world.hub.Patch(r.t.Context(), obj, patch))
}

// annotateRevision does so with a revision.
func (r *rolling) annotateRevision(revision, annotation, value string) {
	r.t.Helper()
	r.annotate(&appsv1.ControllerRevision{}, revision, annotation, value)
}

func ofNumber(n int32) *intstr.IntOrString { return ptr.To(intstr.FromInt32(n)) }

// TestRolloutInWaves brings an edit to a canary, then to others once somebody approves. The manager is killed meanwhile,
// and a cluster joins. Each cluster's assignment is written once.
func TestRolloutInWaves(t *testing.T) {
	t.Parallel()
	r := newRolling(t, "wave", 5)
	before := r.latestRevision("platform")

	since := world.hub.mark(t)
	r.edit("two", "none", func(spec *addonsv1.AddonStackSpec) {
		spec.Rollout = &addonsv1.Rollout{
			MaxConcurrent: ofNumber(2),
			Soak:          &metav1.Duration{Duration: 2 * time.Second},
			Waves: []addonsv1.RolloutWave{
				{Name: "canary", Size: ofNumber(1)},
				{Name: "late", ClusterSelector: &metav1.LabelSelector{}, Approval: addonsv1.RolloutApprovalRequired},
			},
		}
	})
	s := r.awaitPhase(addonsv1.RolloutWaitingForApproval, 1, "the canary is over")
	target := s.Status.Rollout.Revision
	r.Expect(target).NotTo(Equal(before))
	r.Expect(s.Status.Rollout.Completed).To(Equal(before))
	r.Expect(s.Status.Rollout.Waves[0]).To(HaveField("Done", int32(1)))
	r.Expect(conditions.IsTrue(s, addonsv1.ReadyCondition)).To(BeTrue(), "a rollout that waits is no failure")
	r.Expect(r.attempt(before).Completed).NotTo(BeZero())
	r.Expect(r.attempt(target).Started).NotTo(BeZero())
	message := conditions.GetMessage(s, addonsv1.RolledOutCondition)
	r.Expect(message).To(And(ContainSubstring(target), ContainSubstring("rollout approve -n "+r.namespace+" platform late")))

	r.manager.Kill()
	late := r.join(9)
	r.startManager()
	r.awaitCluster(late, "a new cluster gets the completed revision", ready("settings"))
	r.Expect(r.at(before)).To(ContainElement(late))
	r.awaitPhase(addonsv1.RolloutWaitingForApproval, 1, "a restart changes nothing")

	r.annotateRevision(target, addonsv1.RolloutApprovedAnnotation, "late")
	s = r.awaitPhase(addonsv1.RolloutCompleted, 6, "it is approved")
	r.Expect(s.Status.Rollout.Completed).To(Equal(target))
	r.Expect(conditions.IsTrue(s, addonsv1.RolledOutCondition)).To(BeTrue())
	r.awaitReady("platform", "all have it")

	assigned := map[string]int{}
	for _, e := range since.requests(t, r.user) {
		if e.Verb == "patch" && e.ObjectRef != nil && e.ObjectRef.Resource == "clusteraddons" && e.ObjectRef.Subresource == "" && e.ResponseStatus.Code < 300 {
			assigned[e.ObjectRef.Name]++
		}
	}
	for name, writes := range assigned {
		if name == late { // which reported first what its cluster runs
			writes--
		}
		r.Expect(writes).To(Equal(1), name)
	}
	r.Expect(assigned).To(HaveLen(6))
}

// TestRolloutRollsBack brings an edit to a canary on which it can't be applied: it is rejected, and the canary goes back.
// No other cluster has seen it. An edit that is good reaches the canary first, and then all.
func TestRolloutRollsBack(t *testing.T) {
	long.InCI(t)
	t.Parallel()
	r := newRolling(t, "back", 3)
	before := r.latestRevision("platform")
	r.edit("one", "none", func(spec *addonsv1.AddonStackSpec) {
		spec.Rollout = &addonsv1.Rollout{Waves: []addonsv1.RolloutWave{{Name: "canary", Size: ofNumber(1)}}, OnFailure: addonsv1.RolloutRollBack}
	})
	r.awaitPhase(addonsv1.RolloutCompleted, 3, "a limit makes no revision")
	r.Expect(r.latestRevision("platform")).To(Equal(before))

	r.edit("two", "env")
	r.awaitPhase(addonsv1.RolloutProgressing, 1, "the canary has it")
	bad := r.latestRevision("platform")
	s := r.awaitPhase(addonsv1.RolloutRolledBack, 3, "it failed, and is rejected")
	r.Expect(s.Status.Rollout.Revision).To(Equal(bad))
	r.Expect(s.Status.Rollout.Completed).To(Equal(before))
	r.Expect(r.at(bad)).To(BeEmpty())
	r.Expect(conditions.GetReason(s, addonsv1.ReadyCondition)).To(Equal(string(addonsv1.RolloutRolledBack)))
	r.Expect(conditions.IsTrue(s, addonsv1.StalledCondition)).To(BeTrue())
	for _, name := range r.at(before) {
		r.awaitCluster(name, "it is as before", ready("settings"))
	}
	r.awaitEvent("RevisionRejected", bad)

	r.edit("three", "none")
	s = r.awaitPhase(addonsv1.RolloutCompleted, 3, "it is good")
	r.Expect(s.Status.Rollout.Revision).To(Equal(r.latestRevision("platform")))
	r.awaitReady("platform", "all have it")
	r.Expect(strings.Join(r.at(bad), " ")).To(BeEmpty())
}
