// SPDX-License-Identifier: Apache-2.0

package instances

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/reasons"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/wait"
)

// TestUnknownFields has an instance beside CRDs of a newer release. It continues with stacks that don't use what is new, and
// leaves alone what the others have installed: a new field may restrict them.
func TestUnknownFields(t *testing.T) {
	long.InCI(t)
	t.Parallel()
	w := newWorld(t, usual)
	s := workload(t, 1)
	i := w.startInstance(overlay{name: "older", namespaces: []string{"team-a"}})
	w.installSettings(s, "team-a", "prod")
	w.create(stackNamed("team-a", "plain", nil, settings("plain", w.addonNamespace("team-a"), "one")))
	w.awaitInstalled(s, "team-a", "plain", "one/none")
	w.addTomorrow()

	w.patchStack("platform", `[{"op": "add", "path": "/spec/addons/0/values/text", "value": "two"}, {"op": "add", "path": "/spec/addons/0/tomorrow", "value": "no"}]`)
	refuses := func(name, field string) func() error {
		return func() error {
			stack := stackNamed("team-a", name, nil)
			if err := w.Get(t.Context(), client.ObjectKeyFromObject(stack), stack); err != nil {
				return err
			}
			for _, kind := range []string{addonsv1.ValidCondition, addonsv1.ReadyCondition} {
				c := conditions.Get(stack, kind)
				if c == nil || c.Status != metav1.ConditionFalse || c.Reason != addonsv1.UnknownFieldsReason || !strings.Contains(c.Message, field) {
					return fmt.Errorf("condition %s: %+v", kind, c)
				}
			}
			return nil
		}
	}
	wait.Until(t, patience, "the stack is refused", refuses("platform", "spec.addons[0].tomorrow"))

	t.Run("a new stack is refused", func(t *testing.T) {
		w := w.in(t)
		strange := anyStack("strange")
		strange.Object["spec"] = map[string]any{"tomorrow": "no", "clusterSelector": map[string]any{}, "addons": []any{
			map[string]any{"name": "strange", "namespace": w.addonNamespace("team-a"), "chart": map[string]any{"path": chartFile}},
		}}
		w.create(strange)
		wait.Until(t, patience, "the stack is refused", refuses("strange", "spec.tomorrow"))
	})
	t.Run("others go on", func(t *testing.T) {
		w := w.in(t)
		w.patchStack("plain", `[{"op": "add", "path": "/spec/addons/0/values/text", "value": "two"}]`)
		w.awaitInstalled(s, "team-a", "plain", "two/none")
	})
	t.Run("a revision of a newer instance is left alone", func(t *testing.T) {
		w := w.in(t)
		w.patchStack("plain", `[{"op": "add", "path": "/spec/addons/0/values/text", "value": "three"}, {"op": "add", "path": "/spec/addons/0/tomorrow", "value": "no"}]`)
		w.reviseAsNewer("plain")
		wait.Until(t, patience, "the stack is refused", refuses("plain", "spec.addons[0].tomorrow"))
		w.awaitReason("team-a", "prod", "plain", reasons.StackUndecided, "tomorrow")
	})
	found, err := installed(t.Context(), s, w.addonNamespace("team-a"))
	NewWithT(t).Expect(found, err).To(Equal(map[string]string{"settings": "one/none", "plain": "two/none"}))

	revisions := &appsv1.ControllerRevisionList{}
	NewWithT(t).Expect(w.List(t.Context(), revisions, client.InNamespace("team-a"), client.MatchingLabels{addonsv1.StackNameLabel: "platform"})).To(Succeed())
	NewWithT(t).Expect(revisions.Items).To(HaveLen(1), "the refused spec isn't kept: a new Cluster gets what is in force")
	refused := stackNamed("team-a", "platform", nil)
	NewWithT(t).Expect(w.Get(t.Context(), client.ObjectKeyFromObject(refused), refused)).To(Succeed())
	wait.Throughout(t, 3*time.Second, "what is refused isn't written again", func() error {
		now := stackNamed("team-a", "platform", nil)
		if err := w.Get(t.Context(), client.ObjectKeyFromObject(now), now); err != nil || now.ResourceVersion != refused.ResourceVersion {
			return fmt.Errorf("%w: %+v", err, now.Status)
		}
		return nil
	})
	w.patchStack("platform", `[{"op": "remove", "path": "/spec/addons/0/tomorrow"}]`)
	w.awaitInstalled(s, "team-a", "settings", "two/none")

	log, err := os.ReadFile(i.last().LogFile)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	first := "Installed add-on settings 1.0.0 in namespace " + w.addonNamespace("team-a") + " (release revision 1)"
	for _, event := range []string{first, "Kept spec as revision 1, platform"} {
		NewWithT(t).Expect(strings.Count(string(log), event)).To(Equal(1), "each event is logged once: %s", event)
	}
}

// addTomorrow adds a field to spec, and one to each add-on, as a newer release does, and waits until they are kept.
func (w *world) addTomorrow() {
	w.t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	must.Succeed(w.t, w.Get(w.t.Context(), client.ObjectKey{Name: stackCRD}, crd))
	before := crd.DeepCopy()
	for i := range crd.Spec.Versions {
		if crd.Spec.Versions[i].Name == addonsv1.GroupVersion.Version {
			spec := crd.Spec.Versions[i].Schema.OpenAPIV3Schema.Properties["spec"].Properties
			spec["tomorrow"] = apiextensionsv1.JSONSchemaProps{Type: "string"}
			spec["addons"].Items.Schema.Properties["tomorrow"] = apiextensionsv1.JSONSchemaProps{Type: "string"}
		}
	}
	must.Succeed(w.t, w.Patch(w.t.Context(), crd, client.MergeFrom(before)))
	probe := anyStack("platform")
	wait.Until(w.t, patience, "the API server is to keep the new fields", func() error {
		err := w.Patch(w.t.Context(), probe, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"tomorrow":"yes"}}`)), client.DryRunAll)
		if tomorrow, _, _ := unstructured.NestedString(probe.Object, "spec", "tomorrow"); err == nil && tomorrow == "" {
			err = fmt.Errorf("it is dropped")
		}
		return err
	})
}

// anyStack is a stack of team-a, which may have any fields.
func anyStack(name string) *unstructured.Unstructured {
	stack := &unstructured.Unstructured{}
	stack.SetGroupVersionKind(addonsv1.GroupVersion.WithKind("AddonStack"))
	stack.SetNamespace("team-a")
	stack.SetName(name)
	return stack
}

// patchStack changes a stack of team-a as somebody does who knows all fields.
func (w *world) patchStack(name, patch string) {
	w.t.Helper()
	if err := w.Patch(w.t.Context(), stackNamed("team-a", name, nil), client.RawPatch(types.JSONPatchType, []byte(patch))); err != nil {
		w.t.Fatal(err)
	}
}

// reviseAsNewer makes a revision of a stack of team-a, as an instance does that knows all fields, and assigns it to
// Cluster prod.
func (w *world) reviseAsNewer(name string) {
	w.t.Helper()
	g := NewWithT(w.t)
	all := &appsv1.ControllerRevisionList{}
	g.Expect(w.List(w.t.Context(), all, client.InNamespace("team-a"), client.MatchingLabels{addonsv1.StackNameLabel: name})).To(Succeed())
	newest := slices.MaxFunc(all.Items, func(a, b appsv1.ControllerRevision) int { return cmp.Compare(a.Revision, b.Revision) })
	written := anyStack(name)
	g.Expect(w.Get(w.t.Context(), client.ObjectKeyFromObject(written), written)).To(Succeed())
	newer := &appsv1.ControllerRevision{Revision: newest.Revision + 1}
	newer.Namespace, newer.Name, newer.Labels, newer.OwnerReferences, newer.Annotations = "team-a", name+"-newer", newest.Labels, newest.OwnerReferences, newest.Annotations
	newer.Annotations[addonsv1.StackGenerationAnnotation] = fmt.Sprint(written.GetGeneration())
	newer.Data.Raw, _ = json.Marshal(written.Object["spec"])
	g.Expect(w.Create(w.t.Context(), newer)).To(Succeed())
	ca, err := w.clusterAddon(w.t.Context(), "team-a", "prod")
	g.Expect(err).NotTo(HaveOccurred())
	before := ca.DeepCopy()
	for i := range ca.Spec.Stacks {
		if ca.Spec.Stacks[i].Name == name {
			ca.Spec.Stacks[i].Revision = newer.Name
		}
	}
	g.Expect(w.Patch(w.t.Context(), ca, client.MergeFrom(before))).To(Succeed())
}
