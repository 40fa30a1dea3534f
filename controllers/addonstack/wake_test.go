// SPDX-License-Identifier: Apache-2.0

package addonstack

import (
	"testing"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

func TestWhoseObjectsWakeAStack(t *testing.T) {
	verify := &addonsv1.Verification{Cosign: &addonsv1.CosignVerification{PublicKeys: []addonsv1.TrustReference{{Kind: "ConfigMap", Name: "keys"}}}}
	oci := func(secret string) *addonsv1.OCISource {
		return &addonsv1.OCISource{URL: "oci://example.org/web", SecretRef: &addonsv1.CredentialsReference{Name: secret}}
	}
	s := &addonsv1.AddonStack{Spec: addonsv1.AddonStackSpec{
		Source: &addonsv1.BundleSource{ArtifactSource: addonsv1.ArtifactSource{Verify: verify, Version: "docker-scs-1-31-v1", OCI: oci("of-bundle")}},
		Addons: []addonsv1.Addon{
			{Name: "a", Chart: addonsv1.ChartSource{Version: "1.x", OCI: oci("of-range"), Verify: &addonsv1.Verification{
				Provenance: &addonsv1.ProvenanceVerification{Keyring: addonsv1.TrustReference{Kind: "Secret", Name: "keyring"}},
			}}},
			{Name: "b", Chart: addonsv1.ChartSource{Version: "1.0.0", OCI: oci("of-version")}},
			{Name: "c", Kustomization: &addonsv1.KustomizationSource{ArtifactSource: addonsv1.ArtifactSource{Version: "1.x", OCI: oci("of-files")}}},
		},
	}}
	for object, want := range map[[2]string]bool{
		{"Secret", "of-bundle"}: true, {"ConfigMap", "keys"}: true, {"Secret", "of-range"}: true, {"Secret", "keyring"}: true, {"Secret", "of-files"}: true,
		{"Secret", "of-version"}: true, {"Secret", "keys"}: false, {"ConfigMap", "of-bundle"}: false, {"ConfigMap", "other"}: false,
	} {
		if got := uses(s, object[0], object[1]); got != want {
			t.Errorf("%s: %v, want %v", object, got, want)
		}
	}
}
