// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/long"
)

// injectedChart has two webhooks whose CA bundles somebody is to inject.
var injectedChart = chart{"templates/all.yaml": `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: '{{ .Release.Namespace }}-{{ .Release.Name }}'}
webhooks:
{{- range list "one" "two" }}
- name: {{ . }}.example.com
  clientConfig: {url: 'https://{{ . }}.example.com', caBundle: ''}
  rules: [{apiGroups: [none.example.com], apiVersions: [v1], operations: [CREATE], resources: [nones]}]
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Ignore
{{- end }}
`}

// TestDriftBesideControllers has an autoscaler, a CA injector and a controller of status and
// annotations work on the objects of add-ons ten times a second.
func TestDriftBesideControllers(t *testing.T) {
	long.Test(t)
	t.Parallel()
	seconds := environmentNumber(t, "CHANDLER_DRIFT_SECONDS", 5)
	tn, s := newProd(t, 1)
	path, injected := tn.writeChart("web", "1.0.0", webChart), tn.writeChart("injected", "1.0.0", injectedChart)
	empty := chart{"values.yaml": webChart["values.yaml"], "templates/all.yaml": strings.Replace(webChart["templates/all.yaml"], "labels: {tier: front}", "annotations: {}", 1)}
	tn.install(
		tn.addon("scaled", path, func(a *addonsv1.Addon) {
			a.Drift = &addonsv1.Drift{Ignore: []addonsv1.DriftIgnoreRule{{Kind: "Deployment", Paths: []string{"/spec/replicas"}}}}
		}),
		tn.addon("injected", injected, func(a *addonsv1.Addon) {
			a.Drift = &addonsv1.Drift{Ignore: []addonsv1.DriftIgnoreRule{{Paths: []string{"/webhooks/*/clientConfig/caBundle"}}}}
		}),
		tn.addon("noted", tn.writeChart("empty", "1.0.0", empty)),
		tn.addon("fought", path),
	)
	tn.settle()
	mark := s.mark(t)

	ctx, stop := context.WithTimeout(t.Context(), time.Duration(seconds)*time.Second)
	defer stop()
	var wg sync.WaitGroup
	beats := make([]int, 4)
	beat := func(i int, f func(n int) error) {
		wg.Go(func() {
			for tick := time.NewTicker(100 * time.Millisecond); ctx.Err() == nil; beats[i]++ {
				if err := f(beats[i]); err != nil && ctx.Err() == nil {
					t.Errorf("controller %d: %v", i, err)
					return
				}
				select {
				case <-tick.C:
				case <-ctx.Done():
				}
			}
		})
	}
	scale := func(name string, manager string) func(int) error {
		return func(n int) error {
			_, err := s.clientset.AppsV1().Deployments(tn.namespace).UpdateScale(ctx, name, &autoscalingv1.Scale{
				ObjectMeta: tn.named(name), Spec: autoscalingv1.ScaleSpec{Replicas: int32(2 + n%3)},
			}, metav1.UpdateOptions{FieldManager: manager})
			return err
		}
	}
	deployment := func(name string) *appsv1.Deployment {
		return &appsv1.Deployment{ObjectMeta: tn.named(name)}
	}
	beat(0, scale("scaled", "autoscaler"))
	beat(1, func(n int) error {
		hook := &admissionv1.ValidatingWebhookConfiguration{}
		if err := s.Get(ctx, client.ObjectKey{Name: tn.namespace + "-injected"}, hook); err != nil {
			return err
		}
		for i := range hook.Webhooks {
			hook.Webhooks[i].ClientConfig.CABundle = s.Config().CAData
			if n%2 == 0 {
				hook.Webhooks[i].ClientConfig.CABundle = append([]byte("\n"), s.Config().CAData...)
			}
		}
		return client.IgnoreNotFound(s.Update(ctx, hook, client.FieldOwner("cainjector")))
	})
	beat(2, func(n int) error {
		patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{"beat":"%d"}},"status":{"conditions":[{"type":"Beat%d","status":"True"}]}}`, n, n%2))
		if err := s.Patch(ctx, deployment("noted"), patch, client.FieldOwner("beating")); err != nil {
			return err
		}
		return s.Status().Patch(ctx, deployment("noted"), patch, client.FieldOwner("beating"))
	})
	beat(3, scale("fought", "stubborn"))
	wg.Wait()
	tn.settle()
	t.Logf("%v changes", beats)
	requests := mark.requests(t, tn.clusterUser("prod"))
	t.Logf("%d requests, %d writes", len(requests), len(writes(requests)))
	for _, name := range []string{"scaled", "noted"} {
		tn.Expect(writesTo(requests, name)).To(BeZero(), "%s isn't written to", name)
	}
	tn.Expect(writesTo(requests, tn.namespace+"-injected")).To(BeZero())
	tn.Expect(writesTo(requests, "fought")).To(And(BeNumerically(">=", 1), BeNumerically("<=", 9)), "set back a few times, and then only now and then")
	tn.awaitCluster("prod", "all are installed", ready("scaled", "injected", "noted", "fought"))
	ctx = t.Context()
	insist := scale("fought", "stubborn")
	poll(t, patience, "the fight is told", func() error {
		if err := insist(1); err != nil {
			return err
		}
		ca := tn.clusterAddon("prod")
		if err := world.hub.Get(t.Context(), client.ObjectKeyFromObject(ca), ca); err != nil {
			return err
		}
		if d := statusOf(ca, "fought").Drift; d == nil || d.Objects != 1 || len(d.LastManagers) != 1 || d.LastManagers[0] != "stubborn" {
			return fmt.Errorf("%+v", d)
		}
		return nil
	})
	at := &appsv1.Deployment{}
	tn.Expect(s.Get(t.Context(), client.ObjectKeyFromObject(deployment("scaled")), at)).To(Succeed())
	tn.Expect(*at.Spec.Replicas).To(BeNumerically(">=", 2))

	// An upgrade takes nothing of it back.
	tn.changeStack("platform", func(spec *addonsv1.AddonStackSpec) {
		spec.Addons[0].Values = valuesOf(map[string]any{"tag": "2"})
		spec.Addons[1].Patches = []addonsv1.Patch{{Patch: `[{"op": "add", "path": "/metadata/labels", "value": {"upgraded": "yes"}}]`, Target: &addonsv1.PatchTarget{Kind: "ValidatingWebhookConfiguration"}}}
	})
	tn.awaitCluster("prod", "two are upgraded", installedAs("scaled", 2, ""), installedAs("injected", 2, ""))
	tn.Expect(s.Get(t.Context(), client.ObjectKeyFromObject(deployment("scaled")), at)).To(Succeed())
	tn.Expect(at.Spec.Template.Spec.Containers[0].Image).To(Equal("registry.example/web:2"))
	tn.Expect(*at.Spec.Replicas).To(BeNumerically(">=", 2))
	hook := &admissionv1.ValidatingWebhookConfiguration{}
	tn.Expect(s.Get(t.Context(), client.ObjectKey{Name: tn.namespace + "-injected"}, hook)).To(Succeed())
	tn.Expect(hook.Labels).To(HaveKeyWithValue("upgraded", "yes"))
	for _, webhook := range hook.Webhooks {
		tn.Expect(webhook.ClientConfig.CABundle).NotTo(BeEmpty())
	}
}

// writesTo counts writes to objects of a name, and not to the records.
func writesTo(requests []auditEvent, name string) int {
	n := 0
	for _, e := range requests {
		if e.ObjectRef != nil && e.ObjectRef.Name == name && e.ObjectRef.Resource != "secrets" && len(writes([]auditEvent{e})) > 0 {
			n++
		}
	}
	return n
}
