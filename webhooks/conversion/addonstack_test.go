// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	addonsv1alpha1 "github.com/cluster-chandler/chandler/api/v1alpha1"
	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// What an edit in v1alpha1 makes of a hub object.
func TestEdits(t *testing.T) {
	all := &metav1.LabelSelector{}
	cilium := addonsv1.Addon{Name: "cilium", Chart: addonsv1.ChartSource{Path: "cilium"}}
	web := addonsv1.Addon{Name: "web", DependsOn: []string{"cilium"}, Chart: addonsv1.ChartSource{Path: "web"}}
	with := func(a addonsv1.Addon, change func(*addonsv1.Addon)) addonsv1.Addon {
		a = *a.DeepCopy()
		change(&a)
		return a
	}
	for name, tc := range map[string]struct {
		before []addonsv1.Addon
		edit   func(*addonsv1alpha1.AddonStackSpec)
		after  []addonsv1.Addon
	}{
		"nothing": {
			before: []addonsv1.Addon{web, cilium},
			edit:   func(*addonsv1alpha1.AddonStackSpec) {},
			after:  []addonsv1.Addon{web, cilium},
		},
		"the chart, of a kind with the one before": {
			before: []addonsv1.Addon{cilium, web},
			edit:   func(s *addonsv1alpha1.AddonStackSpec) { s.ChartFrom.Path = "cilium-2" },
			after:  []addonsv1.Addon{with(cilium, func(a *addonsv1.Addon) { a.Chart.Path = "cilium-2" }), web},
		},
		"the chart, to one of a registry": {
			before: []addonsv1.Addon{cilium},
			edit: func(s *addonsv1alpha1.AddonStackSpec) {
				s.ChartLocation = addonsv1alpha1.ChartLocation{RepoURL: "oci://example.org/charts", ChartName: "cilium", Version: "1.19.6"}
			},
			after: []addonsv1.Addon{with(cilium, func(a *addonsv1.Addon) {
				a.Chart = addonsv1.ChartSource{OCI: &addonsv1.OCISource{URL: "oci://example.org/charts/cilium"}, Version: "1.19.6"}
			})},
		},
		"a template, where there was none: lenient": {
			before: []addonsv1.Addon{cilium, web},
			edit:   func(s *addonsv1alpha1.AddonStackSpec) { s.ValuesTemplate = "a: b" },
			after: []addonsv1.Addon{with(cilium, func(a *addonsv1.Addon) {
				a.ValuesTemplate, a.ValuesTemplateMode = "a: b", addonsv1.ValuesTemplateModeLenient
			}), web},
		},
		"another template, of one that is strict": {
			before: []addonsv1.Addon{with(cilium, func(a *addonsv1.Addon) { a.ValuesTemplate = "a: a" })},
			edit:   func(s *addonsv1alpha1.AddonStackSpec) { s.ValuesTemplate = "a: b" },
			after:  []addonsv1.Addon{with(cilium, func(a *addonsv1.Addon) { a.ValuesTemplate = "a: b" })},
		},
		"a strict template made lenient": {
			before: []addonsv1.Addon{with(cilium, func(a *addonsv1.Addon) {
				a.ValuesTemplate, a.ValuesTemplateMode = "a: a", addonsv1.ValuesTemplateModeStrict
			}), web},
			edit: func(s *addonsv1alpha1.AddonStackSpec) { s.ValuesTemplateMode = "" },
			after: []addonsv1.Addon{with(cilium, func(a *addonsv1.Addon) {
				a.ValuesTemplate, a.ValuesTemplateMode = "a: a", addonsv1.ValuesTemplateModeLenient
			}), web},
		},
		"an edit beside an adoption policy that v1alpha1 doesn't have": {
			before: []addonsv1.Addon{with(cilium, func(a *addonsv1.Addon) { a.AdoptionPolicy = addonsv1.AdoptionPolicyAdoptIfEqual })},
			edit:   func(s *addonsv1alpha1.AddonStackSpec) { s.ReleaseNamespace = "kube-system" },
			after: []addonsv1.Addon{with(cilium, func(a *addonsv1.Addon) {
				a.AdoptionPolicy, a.Namespace = addonsv1.AdoptionPolicyAdoptIfEqual, "kube-system"
			})},
		},
		"ownership, over an adoption policy that v1alpha1 doesn't have": {
			before: []addonsv1.Addon{with(cilium, func(a *addonsv1.Addon) { a.AdoptionPolicy = addonsv1.AdoptionPolicyAdoptIfEqual })},
			edit:   func(s *addonsv1alpha1.AddonStackSpec) { s.Options.TakeOwnership = ptr.To(true) },
			after:  []addonsv1.Addon{with(cilium, func(a *addonsv1.Addon) { a.AdoptionPolicy = addonsv1.AdoptionPolicyAdopt })},
		},
		"another name of the only add-on": {
			before: []addonsv1.Addon{with(cilium, func(a *addonsv1.Addon) { a.Readiness = []addonsv1.ReadinessCheck{{Kind: "DaemonSet"}} })},
			edit:   func(s *addonsv1alpha1.AddonStackSpec) { s.ReleaseName = "cni" },
			after: []addonsv1.Addon{with(cilium, func(a *addonsv1.Addon) {
				a.Name, a.Readiness = "cni", []addonsv1.ReadinessCheck{{Kind: "DaemonSet"}}
			})},
		},
		"another name beside further add-ons": {
			before: []addonsv1.Addon{cilium, web},
			edit:   func(s *addonsv1alpha1.AddonStackSpec) { s.ReleaseName = "cni" },
			after:  []addonsv1.Addon{{Name: "cni", Chart: cilium.Chart}, cilium, web},
		},
		"the name of an add-on that isn't the first": {
			before: []addonsv1.Addon{cilium, web},
			edit: func(s *addonsv1alpha1.AddonStackSpec) {
				s.ReleaseName, s.ChartFrom.Path = "web", "web-2"
			},
			after: []addonsv1.Addon{with(web, func(a *addonsv1.Addon) { a.Chart.Path = "web-2" }), cilium},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			hub := &addonsv1.AddonStack{
				ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "platform", Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"mine": "yes"}},
				Spec:       addonsv1.AddonStackSpec{ClusterSelector: all, Addons: tc.before},
			}
			spoke := toSpoke(t.Context(), t, hub)
			tc.edit(&spoke.Spec)
			after := toHub(t.Context(), t, spoke)
			g.Expect(after.Spec.Addons).To(BeComparableTo(tc.after))
			g.Expect(after.ObjectMeta).To(Equal(hub.ObjectMeta), "metadata stays")
			g.Expect(hub.Spec.Addons).To(BeComparableTo(tc.before), "conversion changes nothing of its source")
		})
	}
}

// What v1alpha1 shows in full needs no annotation, and what is in its fields isn't
// in the annotation again.
func TestTheAnnotationHoldsWhatIsNeeded(t *testing.T) {
	g := NewWithT(t)
	hub := &addonsv1.AddonStack{Spec: addonsv1.AddonStackSpec{
		ClusterSelector: &metav1.LabelSelector{},
		Addons: []addonsv1.Addon{{
			Name: "cilium", Namespace: "kube-system", ValuesTemplate: strings.Repeat("# long\n", 30000), ProgressDeadlineSeconds: ptr.To[int32](90),
			Chart: addonsv1.ChartSource{Helm: &addonsv1.HelmSource{URL: "https://example.org", Chart: "cilium"}, Version: "1.19.6"},
		}},
	}}
	hub.Status.Conditions = []metav1.Condition{{Type: "Ready", Message: "all is well"}}
	g.Expect(toSpoke(t.Context(), t, hub).Annotations).To(BeNil())

	hub.Spec.Addons[0].DependsOn = []string{"nobody"}
	hub.Status.Instances = []addonsv1.StackInstance{{WatchFilter: "blue"}}
	spoke := toSpoke(t.Context(), t, hub)
	g.Expect(spoke.Annotations[RestAnnotation]).To(And(ContainSubstring("nobody"), ContainSubstring("blue"),
		Not(ContainSubstring("# long")), Not(ContainSubstring("all is well"))))
	g.Expect(toHub(t.Context(), t, spoke)).To(BeComparableTo(hub))
}

func TestUnreadableAnnotations(t *testing.T) {
	for _, annotation := range []string{"", "garbage", "[]", `"text"`, `{"spec":[]}`, `{"spec":{"addons":{}}}`, tooLarge} {
		spoke := &addonsv1alpha1.AddonStack{ObjectMeta: metav1.ObjectMeta{
			Namespace: "team-a", Name: "platform", Annotations: map[string]string{RestAnnotation: annotation},
		}}
		NewWithT(t).Expect(ConvertAddonStackV1Alpha1ToHub(t.Context(), spoke, &addonsv1.AddonStack{})).To(MatchError(And(
			ContainSubstring("team-a/platform"), Or(ContainSubstring(RestAnnotation), ContainSubstring("edit it in v1beta1")))), annotation)
	}
}

func TestAStackHasNoMoreAddonsThanV1beta1Allows(t *testing.T) {
	g := NewWithT(t)
	hub := &addonsv1.AddonStack{}
	for i := range maxAddons {
		hub.Spec.Addons = append(hub.Spec.Addons, addonsv1.Addon{Name: fmt.Sprintf("addon-%d", i)})
	}
	spoke := toSpoke(t.Context(), t, hub)
	spoke.Spec.ReleaseName = "one-more"
	g.Expect(ConvertAddonStackV1Alpha1ToHub(t.Context(), spoke, &addonsv1.AddonStack{})).To(MatchError(ContainSubstring("spec.releaseName")))
	spoke.Spec.ReleaseName = "addon-63"
	g.Expect(toHub(t.Context(), t, spoke).Spec.Addons).To(HaveLen(maxAddons))
}
