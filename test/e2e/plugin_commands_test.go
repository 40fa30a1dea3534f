// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/rollout"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/must"
)

// commanded is a fleet without a manager: what commands read is written by hand. Stack "platform" follows versions.
// Revision platform-8 is under way, and platform-9 waits behind it. Clusters bergen and genoa have 8, oslo has 7.
// Stacks "plain" and "alone" have no rollout.
type commanded struct {
	*tenant
	plugin *plugin
}

func newCommanded(t *testing.T) *commanded {
	t.Helper()
	c := &commanded{tenant: newTenant(t)}
	c.plugin = c.newPlugin(append(slices.Clone(mayAll), rbacv1.PolicyRule{
		APIGroups: []string{clusterv1.GroupVersion.Group}, Resources: []string{"clusters"}, Verbs: []string{"list"},
	})...)
	web := func(version string) addonsv1.Addon {
		return addonsv1.Addon{Name: "web", Namespace: "default", Chart: addonsv1.ChartSource{Version: version, OCI: &addonsv1.OCISource{URL: "oci://registry.example.org/web"}}}
	}
	s := c.newStack("platform", labels("env=prod"), web("1.x"), addonsv1.Addon{Name: "tools", Chart: addonsv1.ChartSource{Path: "tools"}})
	s.Spec.Rollout = &addonsv1.Rollout{Waves: []addonsv1.RolloutWave{
		{Name: "canary", Size: ofNumber(1)}, {Name: "late", ClusterSelector: &metav1.LabelSelector{}, Approval: addonsv1.RolloutApprovalRequired},
	}}
	c.create(s)
	for _, number := range []int64{6, 7, 8, 9} {
		spec := s.Spec.DeepCopy()
		spec.Rollout, spec.Addons = nil, append([]addonsv1.Addon{web("1." + strconv.FormatInt(number, 10) + ".0")}, spec.Addons[1:]...)
		if number == 6 {
			spec.Addons[1].Chart.Path = "older-tools"
		}
		data, err := json.Marshal(spec)
		must.Succeed(t, err)
		revision := &appsv1.ControllerRevision{ObjectMeta: c.revision(number), Revision: number, Data: runtime.RawExtension{Raw: data}}
		revision.Labels = labels(addonsv1.StackNameLabel + "=platform")
		revision.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(s, addonsv1.GroupVersion.WithKind("AddonStack"))}
		c.create(revision)
	}
	for _, name := range []string{"bergen", "genoa", "oslo"} {
		revision := "platform-8"
		if name == "oslo" {
			revision = "platform-7"
		}
		ca := &addonsv1.ClusterAddon{ObjectMeta: c.named(name)}
		ca.Spec.ClusterName, ca.Spec.Stacks = name, []addonsv1.StackRevision{{Name: "platform", Revision: revision}}
		c.create(ca)
		c.makeClusterObject(name, labels("env=prod"))
	}
	c.makeStack("plain", labels("env=prod"), web("1.0.0"))
	c.makeStack("alone", labels("env=none"), web("1.0.0"))
	return c
}

func (c *commanded) revision(number int64) metav1.ObjectMeta {
	return c.named("platform-" + strconv.FormatInt(number, 10))
}

// marks are the annotations of a revision while nobody did anything. 6 and 7 were completed, and 8 is under way.
func marks(number int64) map[string]string {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	attempt, revision := rollout.Attempt{Number: number, Cause: rollout.Followed}, &appsv1.ControllerRevision{}
	if number < 9 {
		attempt.Started = at
	}
	if number < 8 {
		attempt.Completed = at
	}
	attempt.Note(revision)
	revision.Annotations[addonsv1.StackGenerationAnnotation] = "1"
	return revision.Annotations
}

// reset brings all annotations, specs and statuses back to how they were made, with the rollout in a phase of wave "late".
func (c *commanded) reset(phase addonsv1.RolloutPhase) {
	c.t.Helper()
	for _, number := range []int64{6, 7, 8, 9} {
		change(c.tenant, &appsv1.ControllerRevision{ObjectMeta: c.revision(number)}, func(r *appsv1.ControllerRevision) { r.Annotations = marks(number) })
	}
	for _, name := range []string{"bergen", "genoa", "oslo"} {
		c.cluster(name, nil, func(ca *addonsv1.ClusterAddon) {
			conditions.Set(ca, metav1.Condition{Type: addonsv1.PausedCondition, Status: metav1.ConditionFalse, Reason: addonsv1.NotPausedReason})
			conditions.Set(ca, metav1.Condition{Type: addonsv1.ReadyCondition, Status: metav1.ConditionTrue, Reason: "Ready"})
		})
	}
	for _, name := range []string{"platform", "plain", "alone"} {
		c.stack(name, nil, func(s *addonsv1.AddonStack) {
			s.Status.ObservedGeneration, s.Status.Clusters = s.Generation, &addonsv1.ClusterCounts{Total: 3, Ready: 3, Updated: ptr.To(int32(2))}
			ready := metav1.Condition{Type: addonsv1.ReadyCondition, Status: metav1.ConditionTrue, Reason: addonsv1.ClustersReadyReason}
			if name == "alone" {
				s.Status.Clusters = &addonsv1.ClusterCounts{}
				ready.Reason, ready.Message = addonsv1.NoClusterMatchesReason, "No Cluster has the label env=none"
			}
			conditions.Set(s, ready)
			if name != "platform" {
				return
			}
			rolledOut := metav1.Condition{Type: addonsv1.RolledOutCondition, Status: metav1.ConditionFalse, Reason: string(phase), Message: "Why it is in its phase"}
			s.Status.Rollout = &addonsv1.RolloutStatus{
				Revision: "platform-8", Completed: "platform-7", Phase: phase, Wave: "late", WavesDone: 1, Since: metav1.NewTime(time.Now().Add(-time.Hour)),
				Waves: []addonsv1.RolloutWaveStatus{{Name: "canary", Total: 1, Updated: 1, Done: 1}, {Name: "late", Total: 1, Updated: 1}, {Name: "rest", Total: 1}},
			}
			if phase == addonsv1.RolloutCompleted {
				rolledOut.Status = metav1.ConditionTrue
			}
			conditions.Set(s, rolledOut)
		})
	}
}

// cluster sets the annotations and the status of a ClusterAddon.
func (c *commanded) cluster(name string, annotations map[string]string, status func(*addonsv1.ClusterAddon)) {
	c.t.Helper()
	ca := change(c.tenant, &addonsv1.ClusterAddon{ObjectMeta: c.named(name)}, func(ca *addonsv1.ClusterAddon) { ca.Annotations = annotations })
	status(ca)
	must.Succeed(c.t, world.hub.Status().Update(c.t.Context(), ca))
}

// stack sets the annotations and the status of an AddonStack.
func (c *commanded) stack(name string, annotations map[string]string, status func(*addonsv1.AddonStack)) {
	c.t.Helper()
	s := change(c.tenant, c.newStack(name, nil), func(s *addonsv1.AddonStack) { s.Annotations = annotations })
	status(s)
	must.Succeed(c.t, world.hub.Status().Update(c.t.Context(), s))
}

// annotate sets an annotation of a revision.
func (c *commanded) annotate(number int64, key, value string) {
	c.t.Helper()
	change(c.tenant, &appsv1.ControllerRevision{ObjectMeta: c.revision(number)}, func(r *appsv1.ControllerRevision) { r.Annotations[key] = value })
}

// each calls a function with all objects that commands may write.
func (c *commanded) each(do func(client.Object)) {
	c.t.Helper()
	for _, list := range []client.ObjectList{&appsv1.ControllerRevisionList{}, &addonsv1.AddonStackList{}, &addonsv1.ClusterAddonList{}} {
		must.Succeed(c.t, world.hub.List(c.t.Context(), list, client.InNamespace(c.namespace)))
		must.Succeed(c.t, meta.EachListItem(list, func(o runtime.Object) error {
			do(o.(client.Object))
			return nil
		}))
	}
}

func (c *commanded) resourceVersions() map[string]string {
	c.t.Helper()
	all := map[string]string{}
	c.each(func(o client.Object) { all[o.GetName()] = o.GetResourceVersion() })
	return all
}

// written are the annotations, but for those that are there before a command, by the names of the objects.
func (c *commanded) written() map[string]string {
	c.t.Helper()
	all := map[string]string{}
	c.each(func(o client.Object) {
		for key, value := range o.GetAnnotations() {
			if key != addonsv1.StackGenerationAnnotation && key != addonsv1.RolloutAttemptAnnotation {
				all[o.GetName()+" "+key[strings.LastIndex(key, "/")+1:]] = value
			}
		}
	})
	return all
}

// TestCommands runs command lines, and looks at their exit codes, at what they say, and at what they write.
func TestCommands(t *testing.T) {
	long.InCI(t)
	t.Parallel()
	c := newCommanded(t)
	const approved, rejected, promoted, halted = addonsv1.RolloutApprovedAnnotation, addonsv1.RolloutRejectedAnnotation, addonsv1.RolloutPromotedAnnotation, addonsv1.RolloutHaltedAnnotation
	waits, soaks, isDone := addonsv1.RolloutWaitingForApproval, addonsv1.RolloutSoaking, addonsv1.RolloutCompleted
	isStale := func() {
		c.stack("platform", nil, func(s *addonsv1.AddonStack) { s.Status.ObservedGeneration-- })
	}
	isHeld := func(stacks string) func() {
		return func() {
			c.cluster("genoa", map[string]string{addonsv1.HoldRolloutAnnotation: stacks}, func(*addonsv1.ClusterAddon) {})
		}
	}
	isPaused := func(annotations map[string]string) func() {
		return func() {
			c.cluster("bergen", annotations, func(ca *addonsv1.ClusterAddon) {
				conditions.Set(ca, metav1.Condition{Type: addonsv1.PausedCondition, Status: metav1.ConditionTrue, Reason: addonsv1.PausedReason, Message: "spec.paused of Cluster bergen is true"})
			})
		}
	}
	paused := map[string]string{clusterv1.PausedAnnotation: ""}
	is := func(number int64, key, value string) func() { return func() { c.annotate(number, key, value) } }
	type has = map[string]string
	for _, row := range []struct {
		phase  addonsv1.RolloutPhase
		before func()
		line   string
		code   int
		says   []string
		writes has // nil if nothing is written at all
	}{
		// A3, F5: the revision under way, its versions, and which it replaces.
		{waits, nil, "rollout approve platform late", 0, []string{"platform-8", "web 1.8.0", "1.7.0", "platform-7"}, has{"platform-8 rollout-approved": "late"}},
		{waits, is(8, approved, "canary"), "rollout approve platform late", 0, nil, has{"platform-8 rollout-approved": "canary,late"}},
		{waits, nil, "rollout approve platform late --revision platform-9", 0, []string{"platform-9", "web 1.9.0"}, has{"platform-9 rollout-approved": "late"}},
		{waits, nil, "rollout approve platform late --revision platform-1", 3, []string{"platform-1"}, nil},
		{waits, nil, "rollout approve platform nosuchwave", 3, []string{"nosuchwave", "canary", "late", "rest"}, nil},
		{waits, nil, "rollout approve plain late", 3, []string{"rollout"}, nil},
		{waits, nil, "rollout approve nosuch late", 3, []string{"nosuch"}, nil},
		{waits, isStale, "rollout approve platform late", 3, []string{"older than the spec"}, nil},
		{waits, isStale, "rollout reject platform --reason slow", 3, []string{"older than the spec"}, nil},
		{waits, isStale, "rollout promote platform --full", 3, []string{"older than the spec"}, nil},
		{waits, isStale, "rollout approve platform late --revision platform-8", 0, nil, has{"platform-8 rollout-approved": "late"}},
		{waits, nil, "rollout reject platform --reason slow", 0, []string{"platform-8", "web 1.8.0", "2 clusters"}, has{"platform-8 rollout-rejected": "slow"}},
		{waits, is(8, rejected, "x"), "rollout retry platform", 0, []string{"platform-8"}, has{}},
		{waits, is(8, rejected, ""), "rollout retry platform", 0, []string{"platform-8"}, has{}}, // F11
		{waits, is(9, rejected, "x"), "rollout retry platform", 0, []string{"platform-9"}, has{}},
		{waits, nil, "rollout retry platform", 3, []string{"rejected"}, nil},
		// A15: one step, or all of them.
		{waits, nil, "rollout promote platform", 0, []string{"platform-8", "late"}, has{"platform-8 rollout-approved": "late"}},
		{soaks, nil, "rollout promote platform", 0, []string{"platform-8", "late"}, has{"platform-8 rollout-promoted": "late"}},
		{addonsv1.RolloutWaitingForClusters, is(8, promoted, "canary"), "rollout promote platform", 0, nil, has{"platform-8 rollout-promoted": "canary,late"}},
		{addonsv1.RolloutWaitingForInstances, nil, "rollout promote platform", 3, []string{"--full"}, nil},
		{addonsv1.RolloutProgressing, nil, "rollout promote platform", 3, []string{"Why it is in its phase"}, nil},
		{isDone, nil, "rollout promote platform", 3, []string{"nothing to promote"}, nil},
		{waits, nil, "rollout promote platform --revision platform-9", 3, []string{"platform-9"}, nil},
		{soaks, nil, "rollout promote platform --full", 0, []string{"platform-8"}, has{"platform-8 rollout-approved": "*"}},
		{addonsv1.RolloutHalted, is(8, halted, "{}"), "rollout resume platform", 0, []string{"platform-8"}, has{}},
		{addonsv1.RolloutProgressing, nil, "rollout resume platform", 3, []string{"halted"}, nil},
		// M9, M18: holds.
		{waits, nil, "rollout hold platform genoa", 0, []string{"genoa", "platform"}, has{"genoa hold-rollout": "platform"}},
		{waits, nil, "rollout hold plain genoa bergen", 0, nil, has{"genoa hold-rollout": "plain", "bergen hold-rollout": "plain"}},
		{waits, nil, "rollout hold nosuch genoa", 3, []string{"nosuch"}, nil},
		{waits, nil, "rollout hold platform genoa nosuch", 3, []string{"nosuch"}, nil},
		{waits, isHeld("plain,platform"), "rollout hold platform genoa --release", 0, nil, has{"genoa hold-rollout": "plain"}},
		{waits, nil, "rollout hold platform genoa --release", 0, []string{"wasn't held"}, nil},
		{waits, isHeld("*"), "rollout hold platform genoa --release", 3, []string{"all stacks"}, nil},
		{isDone, isHeld("platform"), "why genoa", 2, []string{"out of changes of platform"}, nil},
		{isDone, isHeld("*"), "why genoa", 2, []string{"out of changes of platform"}, nil},
		{isDone, isHeld("platform"), "why stack/platform", 2, []string{"out of changes of platform", "genoa"}, nil},
		{isDone, isHeld("platform"), "status", 2, []string{"out of changes of platform", "genoa"}, nil},
		{isDone, nil, "why stack/platform", 0, []string{"Nothing is wrong"}, nil},
		// Pause.
		{waits, nil, "pause platform", 0, nil, has{"platform paused": ""}},
		{waits, nil, "pause nosuch", 3, []string{"nosuch"}, nil},
		{waits, nil, "pause platform nosuch", 3, []string{"nosuch"}, nil},
		{waits, nil, "pause bergen", 0, []string{"cluster/bergen"}, has{"bergen paused": ""}},
		{waits, nil, "pause cluster/platform", 3, []string{"platform"}, nil},
		{waits, nil, "look bergen", 0, []string{"cluster/bergen"}, nil},
		{waits, isPaused(paused), "resume cluster/bergen", 3, []string{"spec.paused of Cluster bergen"}, has{}},
		{waits, isPaused(nil), "resume bergen", 3, []string{"spec.paused of Cluster bergen"}, nil},
		{waits, nil, "resume bergen", 0, []string{"wasn't paused"}, nil},
		{waits, nil, "pause --all", 0, []string{"platform", "plain", "alone"}, has{"platform paused": "all", "plain paused": "all", "alone paused": "all"}},
		{waits, func() { c.pauseStack("plain") }, "pause --all", 0, nil, has{"platform paused": "all", "plain paused": "", "alone paused": "all"}},
		{waits, func() { c.plugin.does("pause", "--all"); c.pauseStack("plain") }, "resume --all", 0, []string{"plain"}, has{"plain paused": ""}},
		{waits, nil, "pause", 3, nil, nil},
		{waits, nil, "pause --all platform", 3, nil, nil},
		// Names and groups that don't exist.
		{waits, nil, "rollout foo", 3, []string{"foo"}, nil},
		{waits, nil, "get foo bar", 3, []string{"foo"}, nil},
		{waits, nil, "status -n nosuch", 3, []string{"nosuch"}, nil},
		{waits, nil, "events -n nosuch", 3, []string{"nosuch"}, nil},
		{waits, nil, "pause --all -n nosuch", 3, []string{"nosuch"}, nil},
		{waits, nil, "events nosuch", 3, []string{"nosuch"}, nil},
		{waits, nil, "events genoa", 0, nil, nil},
		// M10: a stack without clusters.
		{waits, nil, "why stack/alone", 2, []string{"No Cluster has the label env=none"}, nil},
		{isDone, nil, "status", 2, []string{"No Cluster has the label env=none"}, nil},
		// L5: each phase has its own time, and words.
		{waits, nil, "rollout status platform", 2, []string{"waiting for approval for 60m"}, nil},
		{waits, nil, "rollout status platform -o wide", 2, []string{"CLUSTER", "bergen", "genoa", "oslo"}, nil}, // A14
		// M12, L26, F5: undo takes the revision before the one under way.
		{waits, nil, "undo platform --dry-run", 0, []string{`addons[web].chart.version: "1.9.0" -> "1.7.0"`}, nil},
		{waits, is(7, rejected, ""), "undo platform --dry-run", 0, []string{`-> "1.6.0"`}, nil},
		{waits, nil, "undo platform --addon web --dry-run", 0, []string{`addons[web].chart.version: "1.9.0" -> "1.7.0"`}, nil},
		{waits, nil, "undo platform --addon nosuch", 3, []string{"nosuch"}, nil},
		{waits, nil, "undo platform --addon tools", 3, []string{"tools"}, nil}, // it is the same there
	} {
		c.reset(row.phase)
		if row.before != nil {
			row.before()
		}
		before := c.resourceVersions()
		args := strings.Fields(row.line)
		p := c.plugin
		if slices.Contains(args, "nosuch") && slices.Contains(args, "-n") {
			p = c.asAdministrator() // whom the API server refuses nothing
		}
		out, code := p.run(args...)
		if code != row.code {
			t.Errorf("%s: exit code %d, want %d: %s", row.line, code, row.code, out)
		}
		for _, text := range row.says {
			if !strings.Contains(out, text) {
				t.Errorf("%s: no %q in: %s", row.line, text, out)
			}
		}
		switch {
		case row.writes != nil:
			if is := c.written(); !maps.Equal(is, row.writes) {
				t.Errorf("%s: wrote %v, want %v: %s", row.line, is, row.writes, out)
			}
		case args[0] != "look" && !maps.Equal(before, c.resourceVersions()):
			t.Errorf("%s wrote: %v", row.line, c.written())
		}
	}
}

// asAdministrator returns the command as a user who may do everything.
func (c *commanded) asAdministrator() *plugin {
	c.t.Helper()
	p := *c.plugin
	config, err := clientcmd.Load(world.hub.Kubeconfig())
	must.Succeed(c.t, err)
	config.Contexts[config.CurrentContext].Namespace = c.namespace
	p.kubeconfig = filepath.Join(c.t.TempDir(), "kubeconfig")
	data, err := clientcmd.Write(*config)
	must.Succeed(c.t, err)
	must.Succeed(c.t, os.WriteFile(p.kubeconfig, data, 0o600))
	return &p
}

// TestUndoOfOneAddon writes one entry of spec.addons, and nothing else.
func TestUndoOfOneAddon(t *testing.T) {
	t.Parallel()
	c := newCommanded(t)
	c.reset(addonsv1.RolloutWaitingForApproval)
	change(c.tenant, c.newStack("platform", nil), func(s *addonsv1.AddonStack) { s.Spec.Addons[1].Chart.Path = "newer-tools" })
	c.plugin.does("undo", "platform", "--addon", "web", "--to-revision", "6")
	s := c.newStack("platform", nil)
	c.Expect(world.hub.Get(t.Context(), c.key("platform"), s)).To(Succeed())
	c.Expect(s.Spec.Addons[0].Chart.Version).To(Equal("1.6.0"))
	c.Expect(s.Spec.Addons[1].Chart.Path).To(Equal("newer-tools"))
	c.Expect(s.Spec.Rollout.Waves).To(HaveLen(2))
}

// TestCommandsWithoutACluster shows the version of the program alone.
func TestCommandsWithoutACluster(t *testing.T) {
	t.Parallel()
	c := &commanded{tenant: newTenant(t)}
	c.plugin = c.newPlugin()
	c.plugin.kubeconfig = filepath.Join(t.TempDir(), "none")
	c.Expect(c.plugin.does("version", "--client")).To(HavePrefix("client: "))
	out, code := c.plugin.run("version")
	c.Expect(out).To(ContainSubstring("client: "))
	c.Expect(code).To(Equal(3))
}
