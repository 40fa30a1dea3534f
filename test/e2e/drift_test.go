// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/must"
)

// webChart has a Deployment of .Values.replicas with an image of .Values.tag, a Service and a
// ConfigMap, named after the release.
var webChart = chart{"values.yaml": "replicas: 1\ntag: '1'\nfate: ''\n", "templates/all.yaml": `
apiVersion: apps/v1
kind: Deployment
metadata: {name: '{{ .Release.Name }}', labels: {tier: front}}
spec:
  replicas: {{ .Values.replicas }}
  selector: {matchLabels: {app: '{{ .Release.Name }}'}}
  template:
    metadata: {labels: {app: '{{ .Release.Name }}'}{{ with .Values.fate }}, annotations: {chandler.test/pod-fate: {{ . }}}{{ end }}}
    spec: {containers: [{name: main, image: 'registry.example/web:{{ .Values.tag }}'}]}
---
apiVersion: v1
kind: Service
metadata: {name: '{{ .Release.Name }}'}
spec: {selector: {app: '{{ .Release.Name }}'}, ports: [{port: 80}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: '{{ .Release.Name }}'}
data: {text: 'as the chart says'}
`}

// drifting is a cluster with an add-on web that others change.
type drifting struct {
	*tenant
	s    *server
	path string
}

func newDrifting(t *testing.T, number int, flags []string, more ...func(*addonsv1.Addon)) *drifting {
	d := &drifting{tenant: newTenant(t), s: workloadServer(t, number)}
	d.path = d.writeChart("web", "1.0.0", webChart)
	d.makeCluster("prod", d.s, labels("env=prod"))
	d.startManager(flags...)
	d.install(d.addon("web", d.path, more...))
	return d
}

func (d *drifting) deployment() *appsv1.Deployment {
	o := &appsv1.Deployment{ObjectMeta: d.named("web")}
	return o
}

func (d *drifting) service() *corev1.Service {
	o := &corev1.Service{ObjectMeta: d.named("web")}
	return o
}

func (d *drifting) configMap() *corev1.ConfigMap {
	o := &corev1.ConfigMap{ObjectMeta: d.named("web")}
	return o
}

// patch changes an object as a manager does that updates.
func (d *drifting) patch(obj client.Object, manager string, patch string) {
	d.t.Helper()
	must.Succeed(d.t, d.s.Patch(d.t.Context(), obj, client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner(manager)))
}

// driftStatus expects the status of drift to pass a check.
func driftStatus(check func(*addonsv1.AddonDrift) error) clusterCheck {
	return func(ca *addonsv1.ClusterAddon) error {
		s := statusOf(ca, "web")
		if s == nil || s.Drift == nil {
			return fmt.Errorf("no drift in %+v", s)
		}
		return check(s.Drift)
	}
}

func repaired(times int64, by, message string) clusterCheck {
	return driftStatus(func(is *addonsv1.AddonDrift) error {
		if is.Objects != 0 || is.Repaired != times || strings.Join(is.LastManagers, " ") != by || !strings.Contains(is.Message, message) || is.LastTime.IsZero() {
			return fmt.Errorf("%+v", is)
		}
		return nil
	})
}

func differing(objects int32, message string) clusterCheck {
	return driftStatus(func(is *addonsv1.AddonDrift) error {
		if is.Objects != objects || !strings.Contains(is.Message, message) {
			return fmt.Errorf("%+v", is)
		}
		return nil
	})
}

// awaitObject waits until an object on the workload cluster is as it should be, and returns how
// long that took.
func awaitObject[T client.Object](d *drifting, obj T, check func(T) error) time.Duration {
	d.t.Helper()
	began := time.Now()
	await(d.t, d.s, obj, patience, "it is to be set right", check)
	return time.Since(began)
}

func TestDriftIsRepaired(t *testing.T) {
	t.Parallel()
	d := newDrifting(t, 0, nil)
	d.settle()

	uid := d.configMap()
	d.Expect(d.s.Get(t.Context(), client.ObjectKeyFromObject(uid), uid)).To(Succeed())
	d.Expect(d.s.Delete(t.Context(), d.configMap())).To(Succeed())
	took := awaitObject(d, d.configMap(), func(o *corev1.ConfigMap) error {
		if o.UID == uid.UID || o.Data["text"] != "as the chart says" {
			return fmt.Errorf("%s %v", o.UID, o.Data)
		}
		return nil
	})
	t.Logf("a deleted object is there again after %s", took)
	d.awaitCluster("prod", "a deletion is told", repaired(1, "", "ConfigMap "+d.namespace+"/web was deleted; repaired"), ready("web"))

	d.patch(d.deployment(), "kubectl-edit", `{"metadata":{"labels":{"tier":"back","mine":"stays"}},"spec":{"replicas":3}}`)
	took = awaitObject(d, d.deployment(), func(o *appsv1.Deployment) error {
		if o.Labels["tier"] != "front" || *o.Spec.Replicas != 1 {
			return fmt.Errorf("%v, %d replicas", o.Labels, *o.Spec.Replicas)
		}
		return nil
	})
	t.Logf("changed fields are set back after %s", took)
	edited := d.deployment()
	d.Expect(d.s.Get(t.Context(), client.ObjectKeyFromObject(edited), edited)).To(Succeed())
	d.Expect(edited.Labels).To(HaveKeyWithValue("mine", "stays"), "a label that the chart doesn't have is none of our business")
	d.awaitCluster("prod", "it is told who did it", repaired(2, "kubectl-edit", ".spec.replicas"))
	d.awaitEvent("DriftRepaired", "was deleted; repaired") // the next one is counted with it

	// Our own label moves the object out of the watch.
	d.patch(d.service(), "kubectl-label", fmt.Sprintf(`{"metadata":{"labels":{%q:"other"}}}`, addonsv1.AddonLabel))
	awaitObject(d, d.service(), func(o *corev1.Service) error {
		if o.Labels[addonsv1.AddonLabel] != "web" {
			return fmt.Errorf("%v", o.Labels)
		}
		return nil
	})
	d.awaitCluster("prod", "a label is told", repaired(3, "kubectl-label", "Service"), ready("web"))
	d.settle()

	t.Run("what others own costs nothing", func(t *testing.T) {
		d := d.in(t)
		mark := d.s.mark(t)
		for i := range 20 {
			d.patch(d.service(), "somebody", fmt.Sprintf(`{"metadata":{"annotations":{"beat":"%d"}}}`, i))
			d.patch(d.configMap(), "somebody", fmt.Sprintf(`{"data":{"theirs":"%d"}}`, i))
		}
		d.settle()
		d.Expect(described(mark.requests(t, d.clusterUser("prod")), func(e auditEvent) bool {
			return notProbe(e) && (e.ObjectRef == nil || e.ObjectRef.Resource != "deployments") // whose health is looked at after repairs
		})).To(BeEmpty(), "no request")
	})

	t.Run("after a restart", func(t *testing.T) {
		d := d.in(t)
		d.stopManager()
		d.Expect(d.s.Delete(t.Context(), d.service())).To(Succeed())
		mark := d.s.mark(t)
		d.startManager()
		awaitObject(d, d.service(), func(*corev1.Service) error { return nil })
		d.awaitCluster("prod", "a deletion is found that nobody saw", repaired(4, "", "Service"))
		d.settle()
		requests := mark.requests(t, d.clusterUser("prod"))
		d.Expect(len(reads(requests, "deployments", "", "get"))).To(BeNumerically("<=", 1), "a watch shows that it is as it was, and its health is evaluated")
		d.Expect(reads(requests, "configmaps", "", "get")).To(BeEmpty())
		d.Expect(writes(requests)).To(HaveLen(1))
	})

	t.Run("its source is gone, and an upgrade is held", func(t *testing.T) {
		d := d.in(t)
		next := d.writeChart("web", "2.0.0", chart{"templates/all.yaml": "{{ fail \"it isn't ready\" }}"})
		d.changeAddon("platform", "web", func(a *addonsv1.Addon) { a.Chart.Path = next })
		d.awaitCluster("prod", "the upgrade fails", phase("web", addonsv1.AddonFailed, "TemplateFailed", ""))
		d.Expect(d.s.Delete(t.Context(), d.service())).To(Succeed())
		awaitObject(d, d.service(), func(*corev1.Service) error { return nil })
		d.awaitCluster("prod", "the failure is told still", phase("web", addonsv1.AddonFailed, "TemplateFailed", ""), repaired(5, "", "Service"))
		d.changeAddon("platform", "web", func(a *addonsv1.Addon) { a.Chart.Path = "nowhere" })
		d.awaitCluster("prod", "the source is gone", phase("web", addonsv1.AddonPending, "ArtifactNotFound", ""))
		d.Expect(d.s.Delete(t.Context(), d.service())).To(Succeed())
		awaitObject(d, d.service(), func(*corev1.Service) error { return nil })
	})

	t.Run("somebody made an object again", func(t *testing.T) {
		d := d.in(t)
		d.changeAddon("platform", "web", func(a *addonsv1.Addon) { a.Chart.Path = d.path })
		d.awaitReady("platform", "the first chart is back")
		d.settle()
		d.stopManager()
		theirs := d.configMap()
		d.Expect(d.s.Delete(t.Context(), theirs)).To(Succeed())
		theirs = d.configMap()
		theirs.Data = map[string]string{"text": "theirs"}
		d.Expect(d.s.Create(t.Context(), theirs)).To(Succeed())
		mark := d.s.mark(t)
		d.startManager()
		refused := phase("web", addonsv1.AddonFailed, "ObjectExists", "ConfigMap "+d.namespace+"/web")
		d.awaitCluster("prod", "it isn't taken", refused)
		for i := range 5 {
			d.reconcileAgain("prod", fmt.Sprint("refused", i))
		}
		d.awaitCluster("prod", "it is told still", refused)
		requests := mark.requests(t, d.clusterUser("prod"))
		d.Expect(writes(requests)).To(BeEmpty())
		d.Expect(len(reads(requests, "configmaps", "", "get"))).To(BeNumerically("<=", 2), "and it isn't tried again all the time")
		d.changeAddon("platform", "web", func(a *addonsv1.Addon) { a.AdoptionPolicy = addonsv1.AdoptionPolicyAdopt })
		awaitObject(d, d.configMap(), func(o *corev1.ConfigMap) error {
			if o.Data["text"] != "as the chart says" {
				return fmt.Errorf("%v", o.Data)
			}
			return nil
		})
		d.awaitCluster("prod", "it is adopted by policy", ready("web"))
	})

	t.Run("nothing is repaired while it is paused, and all afterwards", func(t *testing.T) {
		d := d.in(t)
		d.changeAddon("platform", "web", func(a *addonsv1.Addon) { a.Chart.Path = d.path })
		d.awaitReady("platform", "the first chart is back")
		change(d.tenant, d.clusterAddon("prod"), func(ca *addonsv1.ClusterAddon) { ca.Annotations = labels("cluster.x-k8s.io/paused=true") })
		d.awaitCluster("prod", "it is paused", condition(addonsv1.PausedCondition, "True", "", ""))
		d.Expect(d.s.Delete(t.Context(), d.service())).To(Succeed())
		d.settle()
		d.Expect(apierrors.IsNotFound(d.s.Get(t.Context(), client.ObjectKeyFromObject(d.service()), d.service()))).To(BeTrue())
		change(d.tenant, d.clusterAddon("prod"), func(ca *addonsv1.ClusterAddon) { ca.Annotations = nil })
		awaitObject(d, d.service(), func(*corev1.Service) error { return nil })
	})
}

// in is the same for a part of the test.
func (d *drifting) in(t *testing.T) *drifting {
	return &drifting{tenant: d.tenant.in(t), s: d.s, path: d.path}
}

func TestDriftPolicies(t *testing.T) {
	long.Test(t)
	t.Parallel()
	d := newDrifting(t, 1, nil, func(a *addonsv1.Addon) { a.Drift = &addonsv1.Drift{Policy: addonsv1.DriftPolicyReport} })
	d.settle()
	replicas := func(n int32) func(*appsv1.Deployment) error {
		return func(o *appsv1.Deployment) error {
			if *o.Spec.Replicas != n {
				return fmt.Errorf("%d replicas", *o.Spec.Replicas)
			}
			return nil
		}
	}
	mark := d.s.mark(t)
	d.patch(d.deployment(), "kubectl-scale", `{"spec":{"replicas":3}}`)
	d.awaitCluster("prod", "a change is reported", differing(1, ".spec.replicas, by kubectl-scale"), ready("web"))
	d.Expect(d.s.Delete(t.Context(), d.service())).To(Succeed())
	d.awaitCluster("prod", "so is a deletion", differing(2, "Service"))
	d.settle()
	d.Expect(writes(mark.requests(t, d.clusterUser("prod")))).To(BeEmpty(), "and nothing is written")

	before := d.awaitCluster("prod", "it stays so", differing(2, ""))
	d.restart()
	d.settle()
	after := d.awaitCluster("prod", "a restart finds the same", differing(2, ""))
	d.Expect(statusOf(after, "web").Drift).To(Equal(statusOf(before, "web").Drift))

	d.patch(d.deployment(), "kubectl-scale", `{"spec":{"replicas":1}}`)
	d.restart() // or ten minutes later
	d.awaitCluster("prod", "what is changed back isn't a difference", differing(1, "Service"))

	// The same revision, repaired.
	d.changeAddon("platform", "web", func(a *addonsv1.Addon) { a.Drift.Policy = addonsv1.DriftPolicyCorrect })
	awaitObject(d, d.service(), func(*corev1.Service) error { return nil })
	d.awaitCluster("prod", "a policy that changes brings no upgrade", differing(0, ""), installedAs("web", 1, "1.0.0"))

	d.changeAddon("platform", "web", func(a *addonsv1.Addon) { a.Drift.Policy = addonsv1.DriftPolicyIgnore })
	d.awaitCluster("prod", "nothing is said any more", func(ca *addonsv1.ClusterAddon) error {
		if s := statusOf(ca, "web"); s.Drift != nil {
			return fmt.Errorf("%+v", s.Drift)
		}
		return nil
	})
	d.patch(d.deployment(), "kubectl-scale", `{"spec":{"replicas":4}}`)
	d.settle()
	awaitObject(d, d.deployment(), replicas(4))

	// A rule of the stack, and the policy of the add-on.
	d.changeStack("platform", func(spec *addonsv1.AddonStackSpec) {
		spec.Drift = &addonsv1.Drift{Policy: addonsv1.DriftPolicyReport, Ignore: []addonsv1.DriftIgnoreRule{{Kind: "Deployment", Group: ptr.To("apps"), Paths: []string{"/spec/replicas"}}}}
		spec.Addons[0].Drift = &addonsv1.Drift{Policy: addonsv1.DriftPolicyCorrect}
	})
	d.awaitReady("platform", "the rule is in force")
	d.settle()
	d.patch(d.deployment(), "kubectl-set", `{"metadata":{"labels":{"tier":"back"}}}`)
	awaitObject(d, d.deployment(), func(o *appsv1.Deployment) error {
		if o.Labels["tier"] != "front" {
			return fmt.Errorf("%v", o.Labels)
		}
		return nil
	})
	awaitObject(d, d.deployment(), replicas(4))
	d.awaitCluster("prod", "what a rule leaves isn't told", differing(0, ".metadata.labels.tier"))

	d.changeAddon("platform", "web", func(a *addonsv1.Addon) { a.Values = valuesOf(map[string]any{"tag": "2", "replicas": 2}) })
	d.awaitCluster("prod", "an upgrade is installed", installedAs("web", 2, "1.0.0"))
	awaitObject(d, d.deployment(), func(o *appsv1.Deployment) error {
		if image := o.Spec.Template.Spec.Containers[0].Image; image != "registry.example/web:2" {
			return fmt.Errorf("%s", image)
		}
		return replicas(4)(o)
	})
}

// TestDriftFight has somebody set a field again each time that it is set back.
func TestDriftFight(t *testing.T) {
	long.Test(t)
	t.Parallel()
	d := newDrifting(t, 2, nil)
	d.settle()
	theirs := func() {
		d.patch(d.configMap(), "stubborn", `{"data":{"text":"theirs"}}`)
	}
	mark := d.s.mark(t)
	theirs()
	fights := 0
	ca := d.awaitCluster("prod", "a fight is told, with both names", driftStatus(func(is *addonsv1.AddonDrift) error {
		o := d.configMap()
		if err := d.s.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		if o.Data["text"] != "theirs" {
			fights++
			theirs()
		}
		if is.Objects != 1 || !strings.Contains(is.Message, "stubborn") || !strings.Contains(is.Message, "chandler/"+d.namespace+"/web") {
			return fmt.Errorf("after %d rounds: %+v", fights, is)
		}
		return nil
	}))
	d.settle()
	d.Expect(len(writes(mark.requests(t, d.clusterUser("prod"))))).To(BeNumerically("<=", 6))
	d.Expect(ready("web")(ca)).To(Succeed(), "the add-on is installed, nevertheless")
	d.awaitEvent("DriftFound", "stubborn")

	// Others are repaired at once.
	d.Expect(d.s.Delete(t.Context(), d.service())).To(Succeed())
	awaitObject(d, d.service(), func(*corev1.Service) error { return nil })

	// A rule ends it.
	d.changeAddon("platform", "web", func(a *addonsv1.Addon) {
		a.Drift = &addonsv1.Drift{Ignore: []addonsv1.DriftIgnoreRule{{Managers: []string{"stubborn"}}}}
	})
	d.awaitCluster("prod", "a rule ends the fight", differing(0, ""), ready("web"))
}

// TestDriftOfRecordsOfOlderVersions finds records that don't say what was applied.
func TestDriftOfRecordsOfOlderVersions(t *testing.T) {
	long.Test(t)
	t.Parallel()
	d := newDrifting(t, 0, nil)
	d.stopManager()
	d.Expect(d.s.Delete(t.Context(), d.service())).To(Succeed())
	record := &corev1.Secret{ObjectMeta: d.named("sh.helm.release.v1.web.v1")}
	patch, _ := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{"addons.cluster.x-k8s.io/applied-fields": nil}}})
	d.patch(record, "older", string(patch))
	d.startManager()
	awaitObject(d, d.service(), func(*corev1.Service) error { return nil })
	await(t, d.s, record, patience, "the record is to say it from now on", func(o *corev1.Secret) error {
		if text := o.Annotations["addons.cluster.x-k8s.io/applied-fields"]; strings.Count(text, ",") != 2 {
			return fmt.Errorf("%q", text)
		}
		return nil
	})
	d.settle()
	mark := d.s.mark(t)
	d.restart()
	d.settle()
	d.Expect(reads(mark.requests(t, d.clusterUser("prod")), "secrets", "", "get")).To(BeEmpty())
}
