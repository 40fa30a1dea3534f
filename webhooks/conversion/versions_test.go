// SPDX-License-Identifier: Apache-2.0

package conversion_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	capiconversion "sigs.k8s.io/cluster-api/util/conversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	addonsv1alpha1 "github.com/cluster-chandler/chandler/api/v1alpha1"
	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/admission"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/must"
)

// TestVersions has users of a real API server work in both versions.
func TestVersions(t *testing.T) {
	long.InCI(t)
	started := admission.Start(t, "../..")
	s := &server{Client: started}
	for name, test := range map[string]func(*testing.T, *server){
		"an old manifest applied over what v1beta1 added": applyOverAdditions,
		"a manifest that replaces what v1beta1 added to":  replaceAdditions,
		"a patch": patchAdditions,
		"a manifest that moves to v1beta1 and back":   moveBetweenVersions,
		"annotations that are forged on a new object": forgedOnCreate,
		"annotations that are forged on an update":    forgedOnUpdate,
		"an object that is being deleted":             whileDeleted,
		"status":                                      statusInBothVersions,
		"annotations without room":                    withoutRoom,
		"the rules about several fields":              rulesOfSeveralFields,
		"the admission of v1beta1 holds for v1alpha1": sharedAdmission,
		"large lists":                                 largeLists,
		"the sample":                                  sample,
	} {
		t.Run(name, func(t *testing.T) { test(t, s) })
	}
	t.Run("v1beta1 while no webhook runs", func(t *testing.T) { withoutWebhooks(t, s, started.StopWebhooks) })
}

func applyOverAdditions(t *testing.T, s *server) {
	g := NewWithT(t)
	manifest := s.manifest("apply-over")
	g.Expect(s.apply(t, manifest, "gitops")).To(Succeed())
	s.addThings(t, "apply-over")
	before := s.hub(t, "apply-over")

	g.Expect(s.apply(t, manifest, "gitops")).To(Succeed())
	g.Expect(s.hub(t, "apply-over").ResourceVersion).To(Equal(before.ResourceVersion), "applying the same is no write")

	set(manifest, "Orphan", "spec", "deletionPolicy")
	set(manifest, "20%", "spec", "removals", "limit")
	g.Expect(s.apply(t, manifest, "gitops")).To(Succeed())
	after := s.hub(t, "apply-over")
	want := before.Spec.DeepCopy()
	want.DeletionPolicy = addonsv1.DeletionPolicyOrphan
	want.RemovalLimit.StrVal = "20%"
	g.Expect(after.Spec).To(Equal(*want), "the edit, and nothing else")
	g.Expect(after.Generation).To(Equal(before.Generation + 1))
	g.Expect(after.Annotations).NotTo(HaveKey(capiconversion.DataAnnotation), "the annotation isn't stored")

	for range 2 {
		g.Expect(s.apply(t, manifest, "gitops")).To(Succeed())
		g.Expect(s.hub(t, "apply-over").ResourceVersion).To(Equal(after.ResourceVersion), "applying the same is no write")
	}
}

func replaceAdditions(t *testing.T, s *server) {
	g := NewWithT(t)
	manifest := s.manifest("replace")
	g.Expect(s.Create(t.Context(), manifest.DeepCopy())).To(Succeed())
	replacement := manifest.DeepCopy()
	set(replacement, "Orphan", "spec", "deletionPolicy")
	replacement.SetResourceVersion(s.hub(t, "replace").ResourceVersion)
	g.Expect(s.Update(t.Context(), replacement)).To(Succeed(), "nothing is there that v1alpha1 lacks")

	s.addThings(t, "replace")
	before := s.hub(t, "replace")
	replacement = manifest.DeepCopy()
	replacement.SetResourceVersion(before.ResourceVersion)
	g.Expect(s.Update(t.Context(), replacement)).To(MatchError(ContainSubstring(capiconversion.DataAnnotation)), "an author who doesn't know of a field can't mean to remove it")
	g.Expect(s.hub(t, "replace").Spec).To(Equal(before.Spec))

	spoke := s.spoke(t, "replace")
	spoke.Spec.Addons = spoke.Spec.Addons[:1]
	g.Expect(s.Update(t.Context(), spoke)).To(Succeed())
	want := before.Spec.DeepCopy()
	want.Addons = want.Addons[:1]
	g.Expect(s.hub(t, "replace").Spec).To(Equal(*want))
}

func patchAdditions(t *testing.T, s *server) {
	g := NewWithT(t)
	g.Expect(s.Create(t.Context(), s.manifest("patch"))).To(Succeed())
	s.addThings(t, "patch")
	want := s.hub(t, "patch").Spec.DeepCopy()
	for _, patch := range []string{`{"spec":{"classNames":["small"]}}`, `{"spec":{"removals":null,"bundle":{"path":"bundle"}}}`} {
		g.Expect(s.Patch(t.Context(), s.spoke(t, "patch"), client.RawPatch(types.MergePatchType, []byte(patch)))).To(Succeed())
	}
	want.ClassNames, want.RemovalLimit = []string{"small"}, nil
	want.Source = &addonsv1.BundleSource{ArtifactSource: addonsv1.ArtifactSource{Path: "bundle"}}
	g.Expect(s.hub(t, "patch").Spec).To(Equal(*want))
	newer := `{"spec":{"updates":null,"source":null}}`
	g.Expect(s.Patch(t.Context(), s.hub(t, "patch"), client.RawPatch(types.MergePatchType, []byte(newer)))).To(Succeed())
	spoke := s.spoke(t, "patch")
	g.Expect(spoke.Spec.Bundle).To(BeNil())
	g.Expect(spoke.Annotations[capiconversion.DataAnnotation]).To(MatchJSON(`{"spec":{"serviceAccountName":"deployer"}}`))
}

// moveBetweenVersions applies manifests of one author: who applies removes what was applied before and is no more.
func moveBetweenVersions(t *testing.T, s *server) {
	g := NewWithT(t)
	old := s.manifest("moving")
	newer := old.DeepCopy()
	newer.SetAPIVersion(addonsv1.GroupVersion.String())
	newer.Object["spec"] = map[string]any{
		"clusterSelector": map[string]any{"matchLabels": map[string]any{"env": "prod"}},
		"addons":          []any{map[string]any{"name": "cilium", "chart": map[string]any{"path": "cilium-2"}}},
	}
	g.Expect(s.apply(t, old, "gitops")).To(Succeed())
	g.Expect(s.apply(t, newer, "gitops")).To(Succeed())
	hub := s.hub(t, "moving")
	g.Expect(hub.Spec.Addons).To(Equal([]addonsv1.Addon{{Name: "cilium", Chart: addonsv1.ChartSource{Path: "cilium-2"}}}))
	g.Expect(hub.Spec.RemovalLimit).To(BeNil(), "it was applied in v1alpha1 as removals.limit, and is applied no more")
	g.Expect(s.apply(t, old, "gitops")).To(Succeed())
	g.Expect(s.hub(t, "moving").Spec.RemovalLimit).To(HaveValue(HaveField("StrVal", "10%")))

	set(newer, "deployer", "spec", "serviceAccountName")
	g.Expect(s.apply(t, newer, "gitops")).To(Succeed())
	g.Expect(s.apply(t, old, "gitops")).To(MatchError(ContainSubstring(capiconversion.DataAnnotation)), "v1alpha1 removes nothing that it lacks")
	g.Expect(s.hub(t, "moving").Spec.ServiceAccountName).To(Equal("deployer"))
}

// forgeries are annotations that nobody got from the API server.
var forgeries = map[string]string{
	"a field by v1beta1's rules":         `{"spec":{"serviceAccountName":"forged"}}`,
	"a field against v1beta1's rules":    `{"spec":{"serviceAccountName":"system:masters/../x"}}`,
	"a kind that nobody may select from": `{"spec":{"clusterKinds":["Anything"]}}`,
	"text":                               "garbage",
	"another type":                       `{"spec":[]}`,
}

func forgedOnCreate(t *testing.T, s *server) {
	for name, value := range forgeries {
		manifest := s.manifest("forged")
		manifest.SetAnnotations(map[string]string{capiconversion.DataAnnotation: value})
		g := NewWithT(t)
		g.Expect(s.Create(t.Context(), manifest.DeepCopy())).To(MatchError(ContainSubstring(capiconversion.DataAnnotation)), name)
		g.Expect(s.apply(t, manifest, "gitops")).To(MatchError(ContainSubstring(capiconversion.DataAnnotation)), name)
	}
}

func forgedOnUpdate(t *testing.T, s *server) {
	g := NewWithT(t)
	g.Expect(s.Create(t.Context(), s.manifest("handmade"))).To(Succeed())
	s.addThings(t, "handmade")
	before := s.hub(t, "handmade")
	forge := func(value string) error {
		spoke := s.spoke(t, "handmade")
		spoke.Annotations = map[string]string{capiconversion.DataAnnotation: value, "example.com/mine": "yes"}
		return s.Update(t.Context(), spoke)
	}
	for name, value := range forgeries {
		g.Expect(forge(value)).To(MatchError(ContainSubstring(capiconversion.DataAnnotation)), name)
	}
	g.Expect(s.hub(t, "handmade").Spec).To(Equal(before.Spec))
	shown := s.spoke(t, "handmade").Annotations[capiconversion.DataAnnotation]
	g.Expect(forge(strings.Replace(shown, `"spec":{`, `"status":{"latestRevision":"forged"},"spec":{"source":{"path":"/etc"},"addons":[{"name":"forged"}],`, 1))).To(Succeed())
	after := s.hub(t, "handmade")
	g.Expect(after.Spec).To(Equal(before.Spec), "of fields that v1alpha1 has, the annotation says nothing")
	g.Expect(after.Status).To(Equal(before.Status))
	g.Expect(after.Annotations).To(Equal(map[string]string{"example.com/mine": "yes"}))

	// In v1beta1 it is an annotation as any other, which stops nobody.
	after.Annotations = map[string]string{capiconversion.DataAnnotation: "garbage"}
	g.Expect(s.Update(t.Context(), after)).To(Succeed())
	spoke := s.spoke(t, "handmade")
	g.Expect(spoke.Annotations[capiconversion.DataAnnotation]).To(Equal(shown))
	spoke.Spec.ClassNames = []string{"small"}
	g.Expect(s.Update(t.Context(), spoke)).To(Succeed())
	g.Expect(s.hub(t, "handmade").Annotations).To(BeEmpty())
}

// whileDeleted changes an object that only waits for a finalizer: its add-ons may still be removed by what it says.
func whileDeleted(t *testing.T, s *server) {
	g := NewWithT(t)
	manifest := s.manifest("deleted")
	manifest.SetFinalizers([]string{"example.org/keep"})
	g.Expect(s.Create(t.Context(), manifest)).To(Succeed())
	s.addThings(t, "deleted")
	g.Expect(s.Delete(t.Context(), s.spoke(t, "deleted"))).To(Succeed())
	spoke := s.spoke(t, "deleted")
	spoke.Annotations[capiconversion.DataAnnotation] = `{"spec":{"serviceAccountName":"forged"}}`
	g.Expect(s.Update(t.Context(), spoke)).To(MatchError(ContainSubstring(capiconversion.DataAnnotation)))
	spoke = s.spoke(t, "deleted")
	spoke.Finalizers = nil
	g.Expect(s.Update(t.Context(), spoke)).To(Succeed())
}

func statusInBothVersions(t *testing.T, s *server) {
	g := NewWithT(t)
	g.Expect(s.apply(t, s.manifest("status"), "gitops")).To(Succeed())
	s.addThings(t, "status")
	hub := s.hub(t, "status")
	g.Expect(s.spoke(t, "status").Status.ObservedGeneration).To(BeEquivalentTo(-1), "nobody has looked")
	base := client.MergeFrom(hub.DeepCopy())
	hub.Status = addonsv1.AddonStackStatus{
		ObservedGeneration: 1, LatestRevision: "status-1",
		Clusters:   &addonsv1.ClusterCounts{Total: 3, Ready: 2, Failed: 1},
		Conditions: []metav1.Condition{{Type: addonsv1.ReadyCondition, Status: metav1.ConditionFalse, Reason: "ClustersFailed", Message: "1 of 3", LastTransitionTime: metav1.NewTime(time.Unix(1e9, 0))}},
		Instances:  []addonsv1.StackInstance{{WatchFilter: "blue", ObservedGeneration: 1}},
	}
	g.Expect(s.Status().Patch(t.Context(), hub, base)).To(Succeed())
	spoke := s.spoke(t, "status")
	g.Expect(spoke.Status).To(Equal(hub.Status))
	g.Expect(spoke.Generation).To(Equal(hub.Generation))

	spoke.Status.LatestRevision = "status-2"
	spoke.Annotations = nil // a write of the status writes nothing else
	g.Expect(s.Status().Update(t.Context(), spoke)).To(Succeed())
	after := s.hub(t, "status")
	g.Expect(after.Status.LatestRevision).To(Equal("status-2"))
	g.Expect(after.Status.Instances).To(Equal(hub.Status.Instances))
	g.Expect(after.Spec).To(Equal(hub.Spec))
	g.Expect(after.ManagedFields).To(ContainElement(HaveField("Manager", "gitops")))
}

// withoutWebhooks has instances go on: they work in v1beta1, which is what is stored.
func withoutWebhooks(t *testing.T, s *server, stopWebhooks func()) {
	g := NewWithT(t)
	g.Expect(s.apply(t, s.manifest("outage"), "gitops")).To(Succeed())
	s.addThings(t, "outage")
	stopWebhooks()

	g.Expect(s.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "outage"}, &addonsv1alpha1.AddonStack{})).
		To(MatchError(ContainSubstring("conversion webhook")))
	g.Expect(s.apply(t, s.manifest("outage"), "gitops")).NotTo(Succeed())
	hub := s.hub(t, "outage")
	for _, generation := range []int64{1, 2} {
		base := client.MergeFrom(hub.DeepCopy())
		hub.Status.ObservedGeneration = generation
		g.Expect(s.Status().Patch(t.Context(), hub, base)).To(Succeed())
	}
	after := s.hub(t, "outage")
	g.Expect(after.Status.ObservedGeneration).To(BeEquivalentTo(2))
	g.Expect(after.Generation).To(Equal(hub.Generation))
	g.Expect(after.ManagedFields).To(BeEmpty(), "who applied what is forgotten, since it was applied in v1alpha1: docs/design/conversion.md")
}

// withoutRoom has annotations that leave no room for another one.
func withoutRoom(t *testing.T, s *server) {
	g := NewWithT(t)
	hub := &addonsv1.AddonStack{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "no-room", Annotations: map[string]string{"n": strings.Repeat("x", 256<<10-1)}}}
	hub.Spec = addonsv1.AddonStackSpec{ClusterSelector: &metav1.LabelSelector{}, Addons: []addonsv1.Addon{{Name: "a", Chart: addonsv1.ChartSource{Path: "a"}}}, DegradedAfterSeconds: ptr.To[int32](90)}
	g.Expect(s.Create(t.Context(), hub)).To(Succeed())
	g.Expect(s.List(t.Context(), &addonsv1alpha1.AddonStackList{})).To(Succeed(), "it must not stop others from being read")
	spoke := s.spoke(t, "no-room")
	g.Expect(spoke.Spec.Addons).To(Equal(hub.Spec.Addons))
	spoke.Spec.ClassNames = []string{"small"}
	g.Expect(s.Update(t.Context(), spoke)).To(MatchError(ContainSubstring("edit the object in v1beta1")))
	g.Expect(s.hub(t, "no-room").Spec).To(Equal(hub.Spec))

	hub.Spec.Addons[0].Namespace = "elsewhere"
	g.Expect(s.Update(t.Context(), hub)).To(Succeed())
	g.Expect(s.Delete(t.Context(), hub)).To(Succeed())
}

func rulesOfSeveralFields(t *testing.T, s *server) {
	for name, tc := range map[string]struct {
		change map[string]any
		says   string
	}{
		"no selector":                      {map[string]any{"clusterSelector": nil}, "set spec.clusterSelector or spec.classNames"},
		"no add-ons":                       {map[string]any{"addons": nil}, "set spec.addons, or spec.bundle"},
		"a removal of what is there":       {map[string]any{"removals": map[string]any{"allowed": map[string]any{"addons": []any{"cilium"}}}}, "spec.removals.allowed.addons names an add-on that is in spec.addons"},
		"a limit that is none":             {map[string]any{"removals": map[string]any{"limit": "200%"}}, "limit is a number"},
		"a bundle of two kinds":            {map[string]any{"bundle": map[string]any{"path": "x", "configMap": map[string]any{"name": "x"}}}, "set exactly one of"},
		"an add-on without content":        {map[string]any{"addons": []any{map[string]any{"name": "web"}}}, "set exactly one of chart, kustomization and manifests"},
		"a name with more than a label":    {map[string]any{"addons": []any{map[string]any{"name": "Web", "chart": map[string]any{"path": "web"}}}}, "spec.addons[0].name"},
		"a field that v1alpha1 lacks":      {map[string]any{"serviceAccountName": "deployer"}, `unknown field "spec.serviceAccountName"`},
		"a field of the previous v1alpha1": {map[string]any{"releaseName": "cilium"}, `unknown field "spec.releaseName"`},
	} {
		t.Run(name, func(t *testing.T) {
			manifest := s.manifest("refused")
			for field, value := range tc.change {
				unstructured.RemoveNestedField(manifest.Object, "spec", field)
				if value != nil {
					set(manifest, value, "spec", field)
				}
			}
			NewWithT(t).Expect(s.Create(t.Context(), manifest, client.FieldValidation("Strict"))).To(MatchError(ContainSubstring(tc.says)))
		})
	}
}

func sharedAdmission(t *testing.T, s *server) {
	g := NewWithT(t)
	manifest := s.manifest("shared-admission")
	set(manifest, map[string]any{"matchExpressions": []any{map[string]any{"key": "env", "operator": "Near"}}}, "spec", "clusterSelector")
	err := s.Create(t.Context(), manifest.DeepCopy())
	g.Expect(err).To(MatchError(ContainSubstring("validation.addonstack.addons.cluster.x-k8s.io")))
	g.Expect(err).To(MatchError(ContainSubstring("spec.clusterSelector")))
}

// largeLists has API servers convert a LIST object by object, or all at once: within what webhooks accept, also where
// there are many large ones.
func largeLists(t *testing.T, s *server) {
	const stacks = 80
	note := strings.Repeat("x", 250<<10) // 20 MiB together
	for i := range stacks {
		stack := &addonsv1.AddonStack{ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: fmt.Sprintf("large-%d", i), Labels: map[string]string{"large": ""}, Annotations: map[string]string{"example.org/note": note},
		}}
		stack.Spec.ClusterSelector = &metav1.LabelSelector{}
		stack.Spec.Addons = []addonsv1.Addon{{Name: "a", Chart: addonsv1.ChartSource{Path: "chart"}}}
		must.Succeed(t, s.Create(t.Context(), stack))
	}
	for _, version := range []string{"", "0"} { // from etcd, and from the watch cache
		list := &addonsv1alpha1.AddonStackList{}
		err := s.List(t.Context(), list, client.HasLabels{"large"}, &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: version}})
		if err != nil || len(list.Items) != stacks {
			t.Errorf("a LIST as of %q gives %d, %v", version, len(list.Items), err)
		}
	}
}

func sample(t *testing.T, s *server) {
	g := NewWithT(t)
	data, err := os.ReadFile("../../config/samples/v1alpha1.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	object := &unstructured.Unstructured{}
	g.Expect(yaml.Unmarshal(data, object)).To(Succeed())
	g.Expect(s.Create(t.Context(), object, client.FieldValidation("Strict"))).To(Succeed())
	hub := s.hub(t, object.GetName())
	g.Expect(hub.Spec.Source).NotTo(BeNil())
	g.Expect(hub.Spec.RemovalLimit).NotTo(BeNil())
}

// server is an API server with the things that tests do with AddonStacks.
type server struct{ client.Client }

// manifest is what a user has in a file.
func (s *server) manifest(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": addonsv1alpha1.GroupVersion.String(), "kind": "AddonStack",
		"metadata": map[string]any{"name": name, "namespace": "default"},
		"spec": map[string]any{
			"clusterSelector": map[string]any{"matchLabels": map[string]any{"env": "prod"}},
			"removals":        map[string]any{"limit": "10%"},
			"addons": []any{map[string]any{
				"name": "cilium", "namespace": "kube-system", "chart": map[string]any{"path": "cilium"}, "valuesTemplate": "cluster: {{ .Cluster.metadata.name }}\n",
			}},
		},
	}}
}

// addThings adds, in v1beta1, an add-on, and fields that v1alpha1 lacks.
func (s *server) addThings(t *testing.T, name string) {
	t.Helper()
	hub := s.hub(t, name)
	hub.Spec.Addons = append(hub.Spec.Addons, addonsv1.Addon{Name: "web", DependsOn: []string{"cilium"}, Chart: addonsv1.ChartSource{Path: "web"}})
	hub.Spec.Updates = &addonsv1.Updates{Interval: &metav1.Duration{Duration: time.Hour}, Suspend: ptr.To(true)}
	hub.Spec.ServiceAccountName = "deployer"
	must.Succeed(t, s.Update(t.Context(), hub, client.FieldOwner("another")))
}

func (s *server) hub(t *testing.T, name string) *addonsv1.AddonStack {
	t.Helper()
	hub := &addonsv1.AddonStack{}
	must.Succeed(t, s.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: name}, hub))
	return hub
}

func (s *server) spoke(t *testing.T, name string) *addonsv1alpha1.AddonStack {
	t.Helper()
	spoke := &addonsv1alpha1.AddonStack{}
	must.Succeed(t, s.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: name}, spoke))
	return spoke
}

// apply is `kubectl apply --server-side`.
func (s *server) apply(t *testing.T, manifest *unstructured.Unstructured, manager string, options ...client.ApplyOption) error {
	t.Helper()
	return s.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(manifest.DeepCopy()), append(options, client.FieldOwner(manager))...)
}

func set(object *unstructured.Unstructured, value any, fields ...string) {
	if err := unstructured.SetNestedField(object.Object, runtime.DeepCopyJSONValue(value), fields...); err != nil {
		panic(err)
	}
}
