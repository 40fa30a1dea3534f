// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/cluster-api/util/conditions"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/long"
)

// mayAll lets people change stacks, clusters and revisions, and read Secrets.
var mayAll = []rbacv1.PolicyRule{
	{APIGroups: []string{addonsv1.GroupVersion.Group}, Resources: []string{"addonstacks", "clusteraddons"}, Verbs: []string{"patch", "update"}},
	{APIGroups: []string{"apps"}, Resources: []string{"controllerrevisions"}, Verbs: []string{"patch"}},
	{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}},
}

// TestActsWithKubectl pauses, undoes and confirms, and reads what is installed.
func TestActsWithKubectl(t *testing.T) {
	long.InCI(t)
	t.Parallel()
	r := newRolling(t, "acts", 3)
	p := r.newPlugin(mayAll...)

	p.does("pause", "platform")
	r.awaitStack("platform", "it is paused", addonsv1.PausedCondition, metav1.ConditionTrue, "", "")
	p.does("resume", "stack/platform")
	r.awaitStack("platform", "it continues", addonsv1.PausedCondition, metav1.ConditionFalse, "", "")
	p.does("pause", "cluster/acts-1")
	r.awaitCluster("acts-1", "it is paused", condition(addonsv1.PausedCondition, metav1.ConditionTrue, "", ""))
	p.does("resume", "cluster/acts-1")
	r.awaitCluster("acts-1", "it continues", ready("settings"))
	p.does("look", "platform", "cluster/acts-1")

	first := r.awaitReady("platform", "it is ready").Status.LatestRevision
	r.edit("two", "none")
	r.awaitReady("platform", "it is edited")
	history := p.does("history", "platform")
	r.Expect(history).To(ContainSubstring(first))
	r.Expect(history).To(ContainSubstring("addons[settings].valuesTemplate: "), "what differs is named")
	r.awaitHistories([]addonsv1.ChangeCause{addonsv1.ChangeEdited, addonsv1.ChangeEdited}, "acts-1", []addonsv1.ChangeCause{addonsv1.ChangeEdited, addonsv1.ChangeInstalled})
	r.Expect(p.does("undo", "platform", "--dry-run")).To(ContainSubstring("addons[settings].valuesTemplate: "))
	p.does("undo", "platform")
	r.Expect(r.awaitReady("platform", "it is back").Status.LatestRevision).To(Equal(first))
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: "settings"}}
	r.Expect(r.clients["acts-1"].Delete(t.Context(), settings)).To(Succeed())
	r.awaitHistories([]addonsv1.ChangeCause{addonsv1.ChangeBack, addonsv1.ChangeEdited, addonsv1.ChangeEdited}, "acts-1",
		[]addonsv1.ChangeCause{addonsv1.ChangeRepaired, addonsv1.ChangeBack, addonsv1.ChangeEdited, addonsv1.ChangeInstalled})
	changes := p.does("history", "--since", "1h")
	r.Expect(changes).To(ContainSubstring("platform: Back by kubectl-chandler, now " + first))
	r.Expect(changes).To(ContainSubstring("(acts-0, acts-1, acts-2)"), "the same change is there once")
	r.Expect(p.does("history", "cluster/acts-1")).To(ContainSubstring("platform/settings 1.0.0: Repaired"))
	r.Expect(p.does("history", "cluster/acts-2")).NotTo(ContainSubstring("Repaired"))
	r.changeStack("platform", func(spec *addonsv1.AddonStackSpec) { spec.Addons[0].DependsOn = []string{"nobody"} })
	r.awaitStack("platform", "no revision has it", addonsv1.ValidCondition, metav1.ConditionFalse, "", "")
	r.Expect(p.does("undo", "platform")).To(ContainSubstring(`addons[settings].dependsOn: ["nobody"] -> removed`))
	r.Expect(r.awaitReady("platform", "it is back").Status.LatestRevision).To(Equal(first), "what runs wasn't skipped")
	_, code := p.run("undo", "platform", "--to-revision", "99")
	r.Expect(code).To(Equal(3))

	events := p.does("events", "acts-1")
	r.Expect(events).To(ContainSubstring("clusteraddon/acts-1  AddonReady"))
	r.Expect(events).NotTo(ContainSubstring("acts-2"))

	r.changeStack("platform", func(spec *addonsv1.AddonStackSpec) {
		spec.Addons = append(spec.Addons, r.addon("other", r.path, withValues(map[string]any{"text": "x"})))
	})
	r.awaitReady("platform", "there is another one")
	r.changeStack("platform", func(spec *addonsv1.AddonStackSpec) { spec.Addons = spec.Addons[:1] })
	r.awaitStack("platform", "the removal is held", addonsv1.ClustersReadyCondition, metav1.ConditionFalse, addonsv1.RemovalHeldReason, "")
	out, code := p.run("confirm", "platform")
	r.Expect(code).To(Equal(2), out)
	r.Expect(out).To(ContainSubstring(r.namespace + "/other would go from 3 clusters"))
	r.awaitStack("platform", "nothing is confirmed", addonsv1.ClustersReadyCondition, metav1.ConditionFalse, addonsv1.RemovalHeldReason, "")
	followed := p.follows("events", "acts-2", "-w")
	p.does("confirm", "platform", "--yes")
	r.awaitReady("platform", "the removal goes through")
	poll(t, patience, "events that come are shown", func() error {
		if out := followed(); !strings.Contains(out, "clusteraddon/acts-2  AddonRemoved") || strings.Contains(out, "acts-1") {
			return errors.New(out)
		}
		return nil
	})
	r.awaitCluster("acts-2", "it is gone", ready("settings"))
}

// awaitHistories waits until the stack's history and that of a cluster have changes of these causes, the newest first.
func (r *rolling) awaitHistories(ofStack []addonsv1.ChangeCause, cluster string, ofCluster []addonsv1.ChangeCause) {
	r.t.Helper()
	poll(r.t, patience, "the histories have each change", func() error {
		s, ca := r.newStack("platform", nil), r.clusterAddon(cluster)
		err := errors.Join(world.hub.Get(r.t.Context(), r.key("platform"), s), world.hub.Get(r.t.Context(), r.key(cluster), ca))
		if err != nil {
			return err
		}
		var stack, addons []addonsv1.ChangeCause
		for _, c := range s.Status.History {
			stack = append(stack, c.Cause)
		}
		for _, c := range ca.Status.History {
			addons = append(addons, c.Cause)
		}
		if !slices.Equal(stack, ofStack) || !slices.Equal(addons, ofCluster) {
			return fmt.Errorf("%+v %+v", s.Status.History, ca.Status.History)
		}
		return nil
	})
}

// TestInstalledSeenWithKubectl reads values, manifest and notes of a release whose values came from a Secret, and were made
// up by its chart.
func TestInstalledSeenWithKubectl(t *testing.T) {
	long.InCI(t)
	t.Parallel()
	tn := newTenant(t)
	path := tn.writeChart("secretive", "1.0.0", chart{
		"values.yaml":           "password: none\n",
		"templates/secret.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: made}\nstringData: {password: {{ .Values.password }}, other: made-by-the-chart}\n",
		"templates/text.yaml":   configMap("shown", "{{ .Values.password }}"),
		"templates/dsn.yaml":    configMap("folded", "{{ .Values.dsn | quote }}"),
		"templates/file.yaml":   configMap("lines", "{{ .Values.file | quote }}"),
		"templates/token.yaml":  configMap("token", "made-up-{{ randAlphaNum 24 }}"),
		"templates/NOTES.txt":   "Log in with {{ .Values.password }} at {{ .Release.Name }}\x1b[2J",
	})
	const dsn = "host=db user=bob password=hunter2secret sslmode=verify-full connect_timeout=10 sslrootcert=/etc/db/ca.crt"
	tn.create(tn.secret("values", map[string]string{
		"values.yaml": "password: correct-horse-battery\ndsn: " + dsn + "\nfile: \"user=bob\\npass=hunter2\\n\"\n",
	}))
	tn.makeCluster("prod", workloadServer(t, 0), labels("env=prod"))
	tn.startManager()
	tn.install(tn.addon("secretive", path, valuesFromSecrets("values")))
	p := tn.newPlugin(mayAll...)
	for what, has := range map[string]string{"values": "password: '[hidden]'", "manifest": "name: shown", "notes": "Log in with [hidden] at secretive?[2J"} {
		out := p.does("get", what, "prod", "secretive")
		tn.Expect(out).NotTo(ContainSubstring("correct-horse"), what)
		tn.Expect(out).NotTo(ContainSubstring("made-by-the-chart"), what)
		tn.Expect(out).NotTo(ContainSubstring("hunter2"), what)
		tn.Expect(out).NotTo(ContainSubstring("\x1b"), what)
		tn.Expect(out).To(ContainSubstring(has))
	}
	tn.Expect(p.does("get", "manifest", "prod", "secretive")).To(ContainSubstring("made-up-[hidden]"))
	values, objects := map[string]any{}, &unstructured.UnstructuredList{}
	tn.Expect(json.Unmarshal([]byte(p.does("get", "values", "prod", "secretive", "-o", "json")), &values)).To(Succeed())
	tn.Expect(values).To(HaveKeyWithValue("password", "[hidden]"))
	tn.Expect(json.Unmarshal([]byte(p.does("get", "manifest", "prod", "secretive", "-o", "json")), objects)).To(Succeed())
	tn.Expect(objects.Items).To(ContainElement(HaveField("GetName()", "shown")))
	tn.Expect(p.does("why", "addon/secretive")).To(ContainSubstring("Notes of the chart, as on prod:\nLog in with [hidden] at secretive?[2J\n"))
	others := tn.in(t).newPluginAs("others")
	tn.Expect(others.does("why", "addon/secretive")).NotTo(ContainSubstring("Notes"))
	_, code := others.run("get", "values", "prod", "secretive")
	tn.Expect(code).To(Equal(3), "who may not read the kubeconfig reads nothing of the cluster")
}

// TestRolloutWithKubectl approves, rejects, has a revision tried again, and promotes it.
func TestRolloutWithKubectl(t *testing.T) {
	long.InCI(t)
	t.Parallel()
	r := newRolling(t, "steers", 3)
	p := r.newPlugin(mayAll...)
	r.changeStack("platform", func(spec *addonsv1.AddonStackSpec) {
		spec.Rollout = &addonsv1.Rollout{MinReady: &metav1.Duration{}, MaxConcurrent: ptr.To(intstr.FromInt32(3)), Waves: []addonsv1.RolloutWave{
			{Name: "first", Size: ptr.To(intstr.FromInt32(1)), Approval: addonsv1.RolloutApprovalRequired},
			{Name: "second", Size: ptr.To(intstr.FromInt32(1)), Approval: addonsv1.RolloutApprovalRequired},
		}}
	})
	r.awaitPhase(addonsv1.RolloutCompleted, 3, "what runs was completed")
	p.does("rollout", "hold", "platform", "steers-2")
	r.Expect(r.awaitCluster("steers-2", "it is held").Annotations).To(HaveKeyWithValue(addonsv1.HoldRolloutAnnotation, "platform"))
	p.does("rollout", "hold", "platform", "steers-2", "--release")
	r.Expect(r.awaitCluster("steers-2", "it isn't").Annotations).NotTo(HaveKey(addonsv1.HoldRolloutAnnotation))

	r.edit("two", "none")
	r.awaitPhase(addonsv1.RolloutWaitingForApproval, 0, "the first wave waits")
	out, code := p.run("rollout", "status", "platform")
	r.Expect(code).To(Equal(2), out)
	r.Expect(out).To(MatchRegexp(`first +1 +0 +0 +0 +0 +waiting for approval`))
	_, command, found := strings.Cut(conditions.GetMessage(r.awaitPhase(addonsv1.RolloutWaitingForApproval, 0, "it says how"), addonsv1.RolledOutCondition), "kubectl chandler ")
	r.Expect(found).To(BeTrue(), "the message has the command")
	p.does(strings.Fields(command)...)
	r.awaitPhase(addonsv1.RolloutWaitingForApproval, 1, "the second one waits")
	p.does("rollout", "reject", "platform", "--reason", "it is slow")
	r.awaitPhase(addonsv1.RolloutRolledBack, 3, "all go back")
	out, code = p.run("rollout", "status", "platform")
	r.Expect(code).To(Equal(1), out)
	r.Expect(out).To(ContainSubstring("it is slow"))
	p.does("rollout", "retry", "platform")
	r.awaitPhase(addonsv1.RolloutWaitingForApproval, 0, "another attempt needs its own approvals")
	p.does("rollout", "promote", "platform")
	r.awaitPhase(addonsv1.RolloutWaitingForApproval, 1, "one step is one wave")
	p.does("rollout", "promote", "platform", "--full")
	r.awaitPhase(addonsv1.RolloutCompleted, 3, "all have it")
	p.does("rollout", "status", "platform")
	_, code = p.run("rollout", "retry", "platform")
	r.Expect(code).To(Equal(3), "nothing is rejected")
}
