// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"encoding/json"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	addonsv1alpha1 "github.com/cluster-chandler/chandler/api/v1alpha1"
	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// TestStoredMixture writes, in v1alpha1, a stack whose add-on v1beta1 refuses: what is
// stored so stays possible to edit and to delete, and nothing becomes so.
func TestStoredMixture(t *testing.T) {
	kustomization := addonsv1.Addon{Name: "web", Kustomization: &addonsv1.KustomizationSource{}}
	mixture := *kustomization.DeepCopy()
	mixture.Chart = addonsv1.ChartSource{Path: "web"}
	unverified := addonsv1.Addon{Name: "web", Chart: addonsv1.ChartSource{Path: "web", Verify: &addonsv1.Verification{}}}
	toChart := func(s *addonsv1alpha1.AddonStack) {
		s.Spec.ChartLocation = addonsv1alpha1.ChartLocation{ChartFrom: &addonsv1alpha1.ChartSource{Path: "web"}}
	}
	for name, tc := range map[string]struct {
		stored  addonsv1.Addon
		edit    func(*addonsv1alpha1.AddonStack)
		refused bool
	}{
		"it becomes one":             {kustomization, toChart, true},
		"it isn't one":               {kustomization, func(s *addonsv1alpha1.AddonStack) { s.Labels = map[string]string{"a": "b"} }, false},
		"it is one":                  {mixture, func(s *addonsv1alpha1.AddonStack) { s.Labels = map[string]string{"a": "b"} }, false},
		"it is one with a signature": {unverified, func(s *addonsv1alpha1.AddonStack) { s.Finalizers = nil }, false},
		"it is being deleted": {kustomization, func(s *addonsv1alpha1.AddonStack) {
			toChart(s)
			s.DeletionTimestamp, s.Finalizers = &metav1.Time{Time: time.Unix(1e9, 0)}, nil
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			hub := &addonsv1.AddonStack{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "stored", Finalizers: []string{"example.org/keep"}},
				Spec: addonsv1.AddonStackSpec{Addons: []addonsv1.Addon{tc.stored}}}
			old := toSpoke(t.Context(), t, hub)
			raw, err := json.Marshal(old)
			if err != nil {
				t.Fatal(err)
			}
			written := old.DeepCopy()
			tc.edit(written)
			ctx := admission.NewContextWithRequest(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
				Operation: admissionv1.Update, OldObject: runtime.RawExtension{Raw: raw}}})
			if err := (&defaulter{}).Default(ctx, written); tc.refused != (err != nil) {
				t.Errorf("refused: %v, want it: %t", err, tc.refused)
			}
		})
	}
}
