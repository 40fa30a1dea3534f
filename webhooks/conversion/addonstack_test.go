// SPDX-License-Identifier: Apache-2.0

package conversion_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	capiconversion "sigs.k8s.io/cluster-api/util/conversion"

	addonsv1alpha1 "github.com/cluster-chandler/chandler/api/v1alpha1"
	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/cost"
	"github.com/cluster-chandler/chandler/webhooks/conversion"
)

// fullHub returns a stack with fields that v1alpha1 has under the same name, has under another, and lacks.
func fullHub() *addonsv1.AddonStack {
	return &addonsv1.AddonStack{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "platform", Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"mine": "yes"}},
		Spec: addonsv1.AddonStackSpec{
			ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"env": "prod"}},
			ClassNames:      []string{"small"},
			Source:          &addonsv1.BundleSource{ArtifactSource: addonsv1.ArtifactSource{Path: "bundle"}},
			Addons: []addonsv1.Addon{
				{Name: "cilium", Chart: addonsv1.ChartSource{Path: "cilium"}, ValuesTemplate: "shown: yes"},
				{Name: "web", DependsOn: []string{"cilium"}, Chart: addonsv1.ChartSource{Path: "web"}},
			},
			DeletionPolicy:     addonsv1.DeletionPolicyOrphan,
			RemovalLimit:       ptr.To(intstr.FromString("25%")),
			AllowedRemovals:    &addonsv1.AllowedRemovals{Addons: []string{"old"}},
			Drift:              &addonsv1.Drift{Policy: addonsv1.DriftPolicyReport},
			Updates:            &addonsv1.Updates{Suspend: ptr.To(true)},
			ServiceAccountName: "deployer",
		},
		Status: addonsv1.AddonStackStatus{LatestRevision: "platform-1", Clusters: &addonsv1.ClusterCounts{Total: 3, Ready: 2}},
	}
}

// TestFields has an annotation in v1beta1, too, where it means nothing.
func TestFields(t *testing.T) {
	g := NewWithT(t)
	hub, forged := fullHub(), fullHub()
	forged.Annotations[capiconversion.DataAnnotation] = `{"spec":{"serviceAccountName":"forged"}}`
	spoke := toSpoke(t, forged)
	g.Expect(spoke.Spec).To(Equal(addonsv1alpha1.AddonStackSpec{
		ClusterSelector: hub.Spec.ClusterSelector,
		ClassNames:      hub.Spec.ClassNames,
		Bundle:          hub.Spec.Source,
		Addons:          hub.Spec.Addons,
		DeletionPolicy:  hub.Spec.DeletionPolicy,
		Removals:        addonsv1alpha1.Removals{Limit: hub.Spec.RemovalLimit, Allowed: hub.Spec.AllowedRemovals},
		Drift:           hub.Spec.Drift,
	}))
	g.Expect(spoke.Status).To(Equal(hub.Status))
	g.Expect(spoke.Annotations[capiconversion.DataAnnotation]).To(MatchJSON(`{"spec":{"updates":{"suspend":true},"serviceAccountName":"deployer"}}`), "the fields that v1alpha1 lacks, and no others")
	g.Expect(toHub(t, spoke)).To(BeComparableTo(hub))

	forged.Spec = addonsv1.AddonStackSpec{ClusterSelector: hub.Spec.ClusterSelector, Addons: hub.Spec.Addons}
	g.Expect(toSpoke(t, forged).Annotations).To(Equal(hub.Annotations), "no annotation without need")
}

// TestAnnotationsWithoutRoom has an author fill the 256 KiB that annotations may have: the object can be read beside all
// others, and isn't written without the fields that v1alpha1 lacks.
func TestAnnotationsWithoutRoom(t *testing.T) {
	const limit = apivalidation.TotalAnnotationSizeLimitB
	for _, left := range []int{0, 1, len(capiconversion.DataAnnotation), 90, 200} {
		g := NewWithT(t)
		hub := fullHub()
		hub.Annotations = map[string]string{"n": strings.Repeat("x", limit-1-left)}
		g.Expect(apivalidation.ValidateAnnotationsSize(hub.Annotations)).To(Succeed())
		spoke := toSpoke(t, hub)
		g.Expect(apivalidation.ValidateAnnotationsSize(spoke.Annotations)).To(Succeed(), "an error fails a LIST of all")
		g.Expect(spoke.Spec.Addons).To(Equal(hub.Spec.Addons))
		if left == 200 {
			g.Expect(toHub(t, spoke)).To(BeComparableTo(hub), "here is room")
			continue
		}
		g.Expect(conversion.ConvertAddonStackV1Alpha1ToHub(t.Context(), spoke, &addonsv1.AddonStack{})).
			To(MatchError(And(ContainSubstring("team-a/platform"), ContainSubstring(capiconversion.DataAnnotation), ContainSubstring("v1beta1"))))
	}
}

// TestUnreadableAnnotations takes little memory. One has 240 KiB, each three bytes of which would be an add-on.
func TestUnreadableAnnotations(t *testing.T) {
	for name, annotation := range map[string]string{
		"empty": "", "text": "garbage", "a list": "[]", "another type": `{"spec":[]}`, "a field of another type": `{"spec":{"updates":7}}`,
		"values that take much memory": `{"spec":{"addons":[` + strings.Repeat("{},", 80_000) + `{}]}}`,
	} {
		spoke := &addonsv1alpha1.AddonStack{ObjectMeta: metav1.ObjectMeta{
			Namespace: "team-a", Name: "platform", Annotations: map[string]string{capiconversion.DataAnnotation: annotation},
		}}
		var err error
		took := cost.Quick(func() { err = conversion.ConvertAddonStackV1Alpha1ToHub(t.Context(), spoke, &addonsv1.AddonStack{}) })
		if took.Allocated > 1<<20 {
			t.Errorf("%s: it takes %d bytes", name, took.Allocated)
		}
		NewWithT(t).Expect(err).To(MatchError(And(ContainSubstring("team-a/platform"), ContainSubstring(capiconversion.DataAnnotation), ContainSubstring("v1beta1"))), name)
	}
}
