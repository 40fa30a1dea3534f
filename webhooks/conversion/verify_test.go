// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"

	addonsv1alpha1 "github.com/cluster-chandler/chandler/api/v1alpha1"
	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// TestVerifyStays edits charts in v1alpha1, which doesn't show who has to have signed them.
func TestVerifyStays(t *testing.T) {
	cosign := &addonsv1.Verification{Cosign: &addonsv1.CosignVerification{PublicKeys: []addonsv1.TrustReference{{Kind: "ConfigMap", Name: "keys"}}}}
	provenance := &addonsv1.Verification{Provenance: &addonsv1.ProvenanceVerification{Keyring: addonsv1.TrustReference{Kind: "ConfigMap", Name: "keys"}}}
	inRegistry := addonsv1.ChartSource{OCI: &addonsv1.OCISource{URL: "oci://registry.example.org/charts/web"}, Version: "1.0.0"}
	inRepository := addonsv1.ChartSource{Helm: &addonsv1.HelmSource{URL: "https://charts.example.org", Chart: "web"}, Version: "1.0.0"}
	for name, tc := range map[string]struct {
		chart   addonsv1.ChartSource
		verify  *addonsv1.Verification
		edit    func(*addonsv1alpha1.ChartLocation)
		refused bool
	}{
		"another version":                             {inRegistry, cosign, func(c *addonsv1alpha1.ChartLocation) { c.Version = "1.0.1" }, false},
		"another registry":                            {inRegistry, cosign, func(c *addonsv1alpha1.ChartLocation) { c.RepoURL = "oci://mirror.example.org/charts" }, false},
		"another version of a signed archive":         {inRepository, provenance, func(c *addonsv1alpha1.ChartLocation) { c.Version = "1.0.1" }, false},
		"a registry in place of a repository":         {inRepository, provenance, func(c *addonsv1alpha1.ChartLocation) { c.RepoURL = "oci://registry.example.org" }, false},
		"a repository, which has no such signatures":  {inRegistry, cosign, func(c *addonsv1alpha1.ChartLocation) { c.RepoURL = "https://charts.example.org" }, true},
		"a ConfigMap, of which nothing can be signed": {inRegistry, cosign, inConfigMap, true},
	} {
		t.Run(name, func(t *testing.T) {
			hub := addonsv1.AddonStackSpec{Addons: []addonsv1.Addon{{Name: "web", Chart: tc.chart}}}
			hub.Addons[0].Chart.Verify = tc.verify
			spoke := specToSpoke(hub.DeepCopy())
			tc.edit(&spoke.ChartLocation)
			if err := editSpec(&hub, &spoke); err != nil {
				t.Fatal(err)
			}
			chart := &hub.Addons[0].Chart
			if !equality.Semantic.DeepEqual(chart.Verify, tc.verify) {
				t.Errorf("verify became %v", chart.Verify)
			}
			if !equality.Semantic.DeepEqual(chartToSpoke(chart), spoke.ChartLocation) {
				t.Errorf("the chart became %v", chart)
			}
			if err := refuseMixture(&addonsv1.AddonStack{Spec: hub}); tc.refused != (err != nil) {
				t.Errorf("refused: %v", err)
			}
		})
	}
}

func inConfigMap(c *addonsv1alpha1.ChartLocation) {
	*c = addonsv1alpha1.ChartLocation{ChartFrom: &addonsv1alpha1.ChartSource{ConfigMap: &addonsv1alpha1.ArtifactReference{Name: "web"}}}
}
