// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	addonsv1alpha1 "github.com/cluster-chandler/chandler/api/v1alpha1"
	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// Both versions, as users of a real API server see them.
func TestVersions(t *testing.T) {
	c, stopWebhooks := startServers(t)
	s := &server{Client: c}
	s.waitForWebhooks(t)
	for name, test := range map[string]func(*testing.T, *server){
		"an old manifest applied over what v1beta1 added":   applyOverAdditions,
		"a manifest that replaces what v1beta1 added to":    replaceAdditions,
		"a manifest that is written otherwise than read":    applyOtherwiseWritten,
		"a manifest that moves to v1beta1 and back":         moveBetweenVersions,
		"annotations that were made by hand":                handmadeAnnotations,
		"status":                                            statusInBothVersions,
		"an object that is too large for v1alpha1":          tooLargeToConvert,
		"what v1alpha1 refuses":                             refusals,
		"the admission of v1beta1 holds for v1alpha1":       sharedAdmission,
		"what v1alpha1 accepts, v1beta1 accepts":            accepted,
		"large lists":                                       largeLists,
		"the sample":                                        sample,
		"another release name beside further add-ons":       renameBesideOthers,
		"another release name of the only add-on, and back": renameTheOnlyOne,
	} {
		t.Run(name, func(t *testing.T) { test(t, s) })
	}
	t.Run("v1beta1 while no webhook runs", func(t *testing.T) { withoutWebhooks(t, s, stopWebhooks) })
}

func applyOverAdditions(t *testing.T, s *server) {
	g := NewWithT(t)
	manifest := s.manifest("apply-over")
	g.Expect(s.apply(t, manifest, "gitops")).To(Succeed())
	s.addThings(t, "apply-over")
	before := s.hub(t, "apply-over")

	g.Expect(s.apply(t, manifest, "gitops")).To(Succeed())
	after := s.hub(t, "apply-over")
	g.Expect(after.Generation).To(Equal(before.Generation), "applying the same is no change")
	g.Expect(after.ResourceVersion).To(Equal(before.ResourceVersion), "and no write")

	set(manifest, "1.20.0", "spec", "version")
	g.Expect(s.apply(t, manifest, "gitops")).To(Succeed())
	after = s.hub(t, "apply-over")
	want := before.Spec.DeepCopy()
	want.Addons[0].Chart.Version = "1.20.0"
	g.Expect(after.Spec).To(Equal(*want), "the edit, and nothing else")
	g.Expect(after.Generation).To(Equal(before.Generation + 1))
	g.Expect(after.Annotations).NotTo(HaveKey(RestAnnotation), "the annotation isn't stored")

	for range 2 {
		g.Expect(s.apply(t, manifest, "gitops")).To(Succeed())
		g.Expect(s.hub(t, "apply-over").ResourceVersion).To(Equal(after.ResourceVersion), "applying the same is no write")
	}
}

func replaceAdditions(t *testing.T, s *server) {
	g := NewWithT(t)
	manifest := s.manifest("replace")
	g.Expect(s.Create(t.Context(), manifest.DeepCopy())).To(Succeed())
	s.addThings(t, "replace")
	before := s.hub(t, "replace")

	replacement := manifest.DeepCopy()
	replacement.SetResourceVersion(before.ResourceVersion)
	g.Expect(s.Update(t.Context(), replacement)).To(Succeed())
	after := s.hub(t, "replace")
	g.Expect(after.Spec).To(Equal(before.Spec), "what v1alpha1 doesn't show stays")
	g.Expect(after.Generation).To(Equal(before.Generation))

	replacement = manifest.DeepCopy()
	replacement.SetResourceVersion(after.ResourceVersion)
	set(replacement, "values: {}\n", "spec", "valuesTemplate")
	g.Expect(s.Update(t.Context(), replacement)).To(Succeed())
	want := before.Spec.DeepCopy()
	want.Addons[0].ValuesTemplate = "values: {}\n"
	g.Expect(s.hub(t, "replace").Spec).To(Equal(*want))
}

// Durations, defaults and empty maps can be written in several ways.
func applyOtherwiseWritten(t *testing.T, s *server) {
	g := NewWithT(t)
	manifest := s.manifest("otherwise")
	set(manifest, map[string]any{"matchLabels": map[string]any{}}, "spec", "clusterSelector")
	set(manifest, "oci://registry.example.org/charts/", "spec", "repoURL")
	set(manifest, "Lenient", "spec", "valuesTemplateMode")
	set(manifest, map[string]any{"timeout": "10m", "install": map[string]any{}}, "spec", "options")
	g.Expect(s.apply(t, manifest, "gitops")).To(Succeed())
	g.Expect(s.apply(t, manifest, "gitops")).To(Succeed()) // until there is a status, a write stores its default
	first := s.hub(t, "otherwise")
	g.Expect(first.Spec.ClusterSelector).To(Equal(&metav1.LabelSelector{}))
	g.Expect(first.Spec.Addons[0].Chart.OCI.URL).To(Equal("oci://registry.example.org/charts/cilium"))
	g.Expect(first.Spec.Addons[0].ProgressDeadlineSeconds).To(HaveValue(BeEquivalentTo(600)))

	for range 2 {
		g.Expect(s.apply(t, manifest, "gitops")).To(Succeed())
		g.Expect(s.hub(t, "otherwise").ResourceVersion).To(Equal(first.ResourceVersion))
	}
	for range 2 {
		replacement := manifest.DeepCopy()
		replacement.SetResourceVersion(s.hub(t, "otherwise").ResourceVersion)
		g.Expect(s.Update(t.Context(), replacement)).To(Succeed())
		g.Expect(s.hub(t, "otherwise").Generation).To(Equal(first.Generation))
	}
}

// One who applies takes away what they applied before and apply no more: but not
// by going over to a version that can't show it.
func moveBetweenVersions(t *testing.T, s *server) {
	g := NewWithT(t)
	old := s.manifest("moving")
	newer := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": addonsv1.GroupVersion.String(), "kind": "AddonStack",
		"metadata": map[string]any{"name": "moving", "namespace": "default"},
		"spec": map[string]any{
			"clusterSelector": map[string]any{"matchLabels": map[string]any{"env": "prod"}},
			"addons": []any{
				map[string]any{"name": "cilium", "namespace": "kube-system", "chart": map[string]any{"path": "cilium"}},
				map[string]any{"name": "web", "dependsOn": []any{"cilium"}, "chart": map[string]any{"path": "web"}},
			},
		},
	}}
	g.Expect(s.apply(t, old, "gitops")).To(Succeed())
	g.Expect(s.apply(t, newer, "gitops")).To(Succeed())
	hub := s.hub(t, "moving")
	g.Expect(hub.Spec.Addons).To(HaveLen(2))
	g.Expect(hub.Spec.Addons[0].Chart).To(Equal(addonsv1.ChartSource{Path: "cilium"}))
	g.Expect(hub.Spec.Addons[0].ValuesTemplate).To(BeEmpty(), "it was applied in v1alpha1, and is applied no more")

	g.Expect(s.apply(t, old, "gitops")).To(Succeed())
	hub = s.hub(t, "moving")
	g.Expect(hub.Spec.Addons).To(HaveLen(2), "v1alpha1 removes nothing that it doesn't show")
	g.Expect(hub.Spec.Addons[0].Chart.Helm).NotTo(BeNil())
	g.Expect(hub.Spec.Addons[1].DependsOn).To(ConsistOf("cilium"))
}

func handmadeAnnotations(t *testing.T, s *server) {
	g := NewWithT(t)
	manifest := s.manifest("handmade")
	for _, value := range []string{"garbage", `{"spec":[]}`, `{"spec":{"addons":[{"name":"x","chart":{"path":"/etc"}}]}}`, tooLarge} {
		created := manifest.DeepCopy()
		created.SetAnnotations(map[string]string{RestAnnotation: value})
		g.Expect(s.Create(t.Context(), created)).To(MatchError(ContainSubstring(RestAnnotation)), value)
	}
	g.Expect(s.Create(t.Context(), manifest.DeepCopy())).To(Succeed())
	s.addThings(t, "handmade")
	before := s.hub(t, "handmade")
	for _, value := range []string{"", "null", "garbage", `{"spec":[]}`, `{"spec":{"addons":[]}}`, tooLarge} {
		edited := manifest.DeepCopy()
		edited.SetResourceVersion(s.hub(t, "handmade").ResourceVersion)
		edited.SetAnnotations(map[string]string{RestAnnotation: value, "example.com/mine": value})
		g.Expect(s.Update(t.Context(), edited)).To(Succeed(), value)
		after := s.hub(t, "handmade")
		g.Expect(after.Spec).To(Equal(before.Spec), value)
		g.Expect(after.Annotations).To(Equal(map[string]string{"example.com/mine": value}))
	}
	applied := manifest.DeepCopy()
	applied.SetAnnotations(map[string]string{RestAnnotation: "garbage"})
	g.Expect(s.apply(t, applied, "gitops", client.ForceOwnership)).To(Succeed())
	g.Expect(s.hub(t, "handmade").Spec).To(Equal(before.Spec))

	// In v1beta1 it is an annotation as any other, which stops nobody.
	hub := s.hub(t, "handmade")
	hub.Annotations = map[string]string{RestAnnotation: "garbage"}
	g.Expect(s.Update(t.Context(), hub)).To(Succeed())
	spoke := s.spoke(t, "handmade")
	g.Expect(spoke.Annotations[RestAnnotation]).To(ContainSubstring("dependsOn"))
	spoke.Spec.Version = "2.0.0"
	g.Expect(s.Update(t.Context(), spoke)).To(Succeed())
	hub = s.hub(t, "handmade")
	g.Expect(hub.Annotations).To(BeEmpty())
	g.Expect(hub.Spec.Addons).To(HaveLen(len(before.Spec.Addons)))
}

func statusInBothVersions(t *testing.T, s *server) {
	g := NewWithT(t)
	g.Expect(s.apply(t, s.manifest("status"), "gitops")).To(Succeed())
	hub := s.hub(t, "status")
	base := client.MergeFrom(hub.DeepCopy())
	hub.Status = addonsv1.AddonStackStatus{
		ObservedGeneration: 1, LatestRevision: "status-1",
		Clusters:   &addonsv1.ClusterCounts{Total: 3, Ready: 2, Failed: 1},
		Conditions: []metav1.Condition{{Type: addonsv1.ReadyCondition, Status: metav1.ConditionFalse, Reason: "ClustersFailed", Message: "1 of 3", LastTransitionTime: metav1.NewTime(time.Unix(1e9, 0))}},
		Instances:  []addonsv1.StackInstance{{WatchFilter: "blue", ObservedGeneration: 1}},
	}
	g.Expect(s.Status().Patch(t.Context(), hub, base)).To(Succeed())
	spoke := s.spoke(t, "status")
	g.Expect(spoke.Status.Clusters).To(Equal(&addonsv1alpha1.ClusterCounts{Matching: 3, Ready: 2, Failed: 1}))
	g.Expect(spoke.Status.Conditions).To(HaveLen(1))
	g.Expect(spoke.Generation).To(Equal(hub.Generation))

	spoke.Status.LatestRevision = "status-2"
	g.Expect(s.Status().Update(t.Context(), spoke)).To(Succeed())
	after := s.hub(t, "status")
	g.Expect(after.Status.LatestRevision).To(Equal("status-2"))
	g.Expect(after.Status.Instances).To(Equal(hub.Status.Instances))
	g.Expect(after.Spec).To(Equal(hub.Spec))
	g.Expect(after.ManagedFields).To(ContainElement(HaveField("Manager", "gitops")))
}

// Instances go on: they work in v1beta1, which is what is stored.
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

// Annotations have a limit that v1beta1 objects haven't.
func tooLargeToConvert(t *testing.T, s *server) {
	g := NewWithT(t)
	hub := &addonsv1.AddonStack{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "too-large"}}
	hub.Spec.ClusterSelector = &metav1.LabelSelector{}
	for _, name := range []string{"a", "b"} {
		hub.Spec.Addons = append(hub.Spec.Addons, addonsv1.Addon{Name: name, Chart: addonsv1.ChartSource{Path: name}, ValuesTemplate: strings.Repeat("# too long\n", 20000)})
	}
	g.Expect(s.Create(t.Context(), hub)).To(Succeed())

	list := &addonsv1alpha1.AddonStackList{}
	g.Expect(s.List(t.Context(), list)).To(Succeed(), "it must not stop others from being read")
	spoke := s.spoke(t, "too-large")
	g.Expect(spoke.Spec.ReleaseName).To(Equal("a"))
	spoke.Spec.ReleaseNamespace = "elsewhere"
	g.Expect(s.Update(t.Context(), spoke)).To(MatchError(ContainSubstring("edit it in v1beta1")))
	g.Expect(s.hub(t, "too-large").Spec).To(Equal(hub.Spec))

	g.Expect(s.Delete(t.Context(), spoke)).To(MatchError(ContainSubstring("edit it in v1beta1")))
	hub.Spec.Addons[0].Namespace = "elsewhere"
	g.Expect(s.Update(t.Context(), hub)).To(Succeed())
	g.Expect(s.Delete(t.Context(), hub)).To(Succeed())
}

func refusals(t *testing.T, s *server) {
	for name, tc := range map[string]struct {
		path  string
		value any
		says  string
	}{
		"no selector":                    {"clusterSelector", nil, "set spec.clusterSelector or spec.classNames"},
		"no release name":                {"releaseName", nil, "spec.releaseName: Required value"},
		"a release name with capitals":   {"releaseName", "Cilium", "spec.releaseName"},
		"no version":                     {"version", nil, "repoURL needs version"},
		"a version that is none":         {"version", "1.0;2.0", "exact semantic version"},
		"no chart":                       {"chartName", nil, "repoURL and chartName go together"},
		"no repository":                  {"repoURL", nil, "set exactly one of repoURL and chartFrom"},
		"two charts":                     {"chartFrom", map[string]any{"path": "x"}, "set exactly one of repoURL and chartFrom"},
		"a repository without TLS":       {"repoURL", "http://charts.example.org", "needs plainHTTP: true"},
		"a repository of another kind":   {"repoURL", "git://example.org", "repoURL is https://host/path"},
		"a user in the URL":              {"repoURL", "https://me:secret@example.org", "repoURL is https://host/path"},
		"capitals in an OCI registry":    {"repoURL", "oci://example.org/Charts", "in lower case"},
		"a duration that is none":        {"options", map[string]any{"timeout": "soon"}, "soon"},
		"a timeout that is too short":    {"options", map[string]any{"timeout": "9s"}, "timeout is from 10s to 24h"},
		"a mode that isn't known":        {"valuesTemplateMode", "Loose", "Unsupported value"},
		"an OCI registry without chart":  {"chartName", nil, "repoURL and chartName go together"},
		"a strategy that Chandler lacks": {"reconcileStrategy", "InstallOnce", `unknown field "spec.reconcileStrategy"`},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			manifest := s.manifest("refused")
			if strings.Contains(name, "OCI") {
				set(manifest, "oci://registry.example.org/charts", "spec", "repoURL")
			}
			if tc.value == nil {
				unstructured.RemoveNestedField(manifest.Object, "spec", tc.path)
			} else {
				set(manifest, tc.value, "spec", tc.path)
			}
			g.Expect(s.Create(t.Context(), manifest, client.FieldValidation("Strict"))).To(MatchError(ContainSubstring(tc.says)))
		})
	}
	for field, value := range map[string]any{"version": "1.2.3", "digest": "sha256:" + strings.Repeat("a", 64), "plainHTTP": true, "credentials": map[string]any{"secret": map[string]any{"name": "x"}}} {
		t.Run("a chart that isn't in a repository, with "+field, func(t *testing.T) {
			manifest := s.manifest("refused")
			for _, field := range []string{"repoURL", "chartName", "version"} {
				unstructured.RemoveNestedField(manifest.Object, "spec", field)
			}
			set(manifest, map[string]any{"path": "x"}, "spec", "chartFrom")
			set(manifest, value, "spec", field)
			NewWithT(t).Expect(s.Create(t.Context(), manifest)).To(MatchError(ContainSubstring("are for repoURL")))
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

func accepted(t *testing.T, s *server) {
	for name, spec := range map[string]map[string]any{
		"oci":        {"repoURL": "oci://registry.example.org:5000/charts", "chartName": "cilium", "version": "1.19.6"},
		"oci-range":  {"repoURL": "oci://registry.example.org", "chartName": "cilium", "version": ">=1.2 <2 || ^4"},
		"helm-range": {"repoURL": "https://charts.example.org", "chartName": "cilium", "version": "1.19.x"},
		"oci-digest": {"repoURL": "oci://registry.example.org", "chartName": "cilium", "digest": "sha256:" + strings.Repeat("a", 64)},
		"helm":       {"repoURL": "https://charts.example.org/stable/", "chartName": "Cilium_1", "version": "v1.19.6", "credentials": map[string]any{"secret": map[string]any{"name": "door"}}},
		"plain":      {"repoURL": "http://[::1]:8080/charts", "chartName": "cilium", "version": "1.19.6", "plainHTTP": true},
		"path":       {"chartFrom": map[string]any{"path": "cilium"}},
		"configmap":  {"chartFrom": map[string]any{"configMap": map[string]any{"name": "cilium"}}, "classNames": []any{"a"}, "deletionPolicy": "Orphan"},
		"secret":     {"chartFrom": map[string]any{"secret": map[string]any{"name": "cilium", "key": "a.tgz"}}, "valuesTemplate": "a: b", "valuesTemplateMode": "Strict"},
		"options":    {"chartFrom": map[string]any{"path": "cilium"}, "options": map[string]any{"timeout": "24h", "takeOwnership": true, "install": map[string]any{"createNamespace": false}}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			manifest := s.manifest("accepted-" + name)
			spec["releaseName"], spec["clusterSelector"] = "cilium", map[string]any{}
			manifest.Object["spec"] = spec
			g.Expect(s.Create(t.Context(), manifest.DeepCopy())).To(Succeed())
			hub := s.hub(t, manifest.GetName())
			twin := &addonsv1.AddonStack{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: hub.Name + "-twin"}, Spec: hub.Spec}
			g.Expect(s.Create(t.Context(), twin)).To(Succeed(), "v1beta1's rules, which aren't asked when v1alpha1 writes")
			g.Expect(s.spoke(t, twin.Name).Spec).To(Equal(s.spoke(t, hub.Name).Spec))
			g.Expect(s.spoke(t, twin.Name).Annotations).To(BeEmpty())

			g.Expect(s.apply(t, manifest, "gitops", client.ForceOwnership)).To(Succeed())
			g.Expect(s.hub(t, hub.Name).Generation).To(Equal(hub.Generation))
		})
	}
}

func sample(t *testing.T, s *server) {
	g := NewWithT(t)
	data, err := os.ReadFile("../../config/samples/v1alpha1.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	object := &unstructured.Unstructured{}
	g.Expect(yaml.Unmarshal(data, object)).To(Succeed())
	g.Expect(s.Create(t.Context(), object, client.FieldValidation("Strict"))).To(Succeed())
	g.Expect(s.hub(t, object.GetName()).Spec.Addons).To(ConsistOf(And(
		HaveField("Chart.Helm.Chart", "metrics-server"),
		HaveField("Chart.Version", "3.13.1"),
		HaveField("ValuesTemplateMode", addonsv1.ValuesTemplateModeLenient),
		HaveField("ProgressDeadlineSeconds", HaveValue(BeEquivalentTo(300))),
		HaveField("CreateNamespace", HaveValue(BeFalse())),
	)))
}

func renameBesideOthers(t *testing.T, s *server) {
	g := NewWithT(t)
	g.Expect(s.Create(t.Context(), s.manifest("rename-beside"))).To(Succeed())
	s.addThings(t, "rename-beside")
	before := s.hub(t, "rename-beside")
	spoke := s.spoke(t, "rename-beside")
	spoke.Spec.ReleaseName = "calico"
	g.Expect(s.Update(t.Context(), spoke)).To(Succeed())
	after := s.hub(t, "rename-beside")
	g.Expect(after.Spec.Addons[0].Name).To(Equal("calico"))
	g.Expect(after.Spec.Addons[1:]).To(Equal(before.Spec.Addons), "nothing goes")

	// The name of one that is there shows that one.
	manifest := s.manifest("rename-beside")
	for range 2 {
		g.Expect(s.apply(t, manifest, "gitops", client.ForceOwnership)).To(Succeed())
	}
	again := s.hub(t, "rename-beside")
	g.Expect(again.Generation).To(Equal(after.Generation+1), "once")
	g.Expect(names(again)).To(Equal([]string{"cilium", "calico", "web"}))
	g.Expect(again.Spec.Addons[0]).To(Equal(before.Spec.Addons[0]))
}

func renameTheOnlyOne(t *testing.T, s *server) {
	g := NewWithT(t)
	g.Expect(s.Create(t.Context(), s.manifest("rename"))).To(Succeed())
	before := s.hub(t, "rename")
	for _, name := range []string{"other", "cilium"} {
		spoke := s.spoke(t, "rename")
		spoke.Spec.ReleaseName = name
		g.Expect(s.Update(t.Context(), spoke)).To(Succeed())
		g.Expect(names(s.hub(t, "rename"))).To(Equal([]string{name}))
	}
	g.Expect(s.hub(t, "rename").Spec).To(Equal(before.Spec))
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
			"repoURL":         "https://charts.example.org",
			"chartName":       "cilium",
			"version":         "1.19.6",
			"releaseName":     "cilium",
			"namespace":       "kube-system",
			"valuesTemplate":  "cluster: {{ .Cluster.metadata.name }}\n",
		},
	}}
}

// addThings adds, in v1beta1, what v1alpha1 has no fields for.
func (s *server) addThings(t *testing.T, name string) {
	t.Helper()
	hub := s.hub(t, name)
	first := &hub.Spec.Addons[0]
	first.Values = &apiextensionsv1.JSON{Raw: []byte(`{"hubble":{"enabled":true}}`)}
	first.ValuesFrom = []addonsv1.ValuesReference{{Kind: "Secret", Name: "cilium-values"}}
	first.Readiness = []addonsv1.ReadinessCheck{{APIVersion: "apps/v1", Kind: "DaemonSet", Expression: "self.status.numberReady > 0"}}
	first.AdoptionPolicy = addonsv1.AdoptionPolicyAdoptIfEqual
	hub.Spec.Addons = append(hub.Spec.Addons, addonsv1.Addon{Name: "web", DependsOn: []string{"cilium"}, Chart: addonsv1.ChartSource{Path: "web"}})
	if err := s.Update(t.Context(), hub, client.FieldOwner("another")); err != nil {
		t.Fatal(err)
	}
}

func (s *server) hub(t *testing.T, name string) *addonsv1.AddonStack {
	t.Helper()
	hub := &addonsv1.AddonStack{}
	if err := s.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: name}, hub); err != nil {
		t.Fatal(err)
	}
	return hub
}

func (s *server) spoke(t *testing.T, name string) *addonsv1alpha1.AddonStack {
	t.Helper()
	spoke := &addonsv1alpha1.AddonStack{}
	if err := s.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: name}, spoke); err != nil {
		t.Fatal(err)
	}
	return spoke
}

// apply is `kubectl apply --server-side`.
func (s *server) apply(t *testing.T, manifest *unstructured.Unstructured, manager string, options ...client.ApplyOption) error {
	t.Helper()
	return s.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(manifest.DeepCopy()), append(options, client.FieldOwner(manager))...)
}

// waitForWebhooks waits until the API server calls all three.
func (s *server) waitForWebhooks(t *testing.T) {
	t.Helper()
	probe := s.manifest("probe")
	set(probe, map[string]any{"matchExpressions": []any{map[string]any{"key": "env", "operator": "Near"}}}, "spec", "clusterSelector")
	marked := s.manifest("probe")
	marked.SetAnnotations(map[string]string{RestAnnotation: "{}"})
	NewWithT(t).Eventually(func() error {
		if err := s.Create(t.Context(), probe.DeepCopy(), client.DryRunAll); err == nil || !strings.Contains(err.Error(), "validation.addonstack") {
			return fmt.Errorf("validation isn't called: %w", err)
		}
		if err := s.Create(t.Context(), marked.DeepCopy(), client.DryRunAll); err == nil || !strings.Contains(err.Error(), "default.addonstack") {
			return fmt.Errorf("defaulting isn't called: %w", err)
		}
		return nil
	}, 30*time.Second, 100*time.Millisecond).Should(Succeed())
}

func set(object *unstructured.Unstructured, value any, fields ...string) {
	if err := unstructured.SetNestedField(object.Object, runtime.DeepCopyJSONValue(value), fields...); err != nil {
		panic(err)
	}
}

func names(hub *addonsv1.AddonStack) []string {
	var names []string
	for _, a := range hub.Spec.Addons {
		names = append(names, a.Name)
	}
	return names
}
