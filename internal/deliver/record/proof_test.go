// SPDX-License-Identifier: Apache-2.0

package record_test

import (
	"testing"

	helmrelease "helm.sh/helm/v4/pkg/release/v1"

	"github.com/cluster-chandler/chandler/internal/deliver/record"
)

// TestProofTellsNothingOfSecrets has somebody who reads a proof in a status, and knows all of the add-on but a short
// password, try them all.
func TestProofTellsNothingOfSecrets(t *testing.T) {
	sealed := func(password, salt string) *record.Record {
		r := &record.Record{
			Summary: record.Summary{Release: record.Release{Namespace: "web", Name: "web"}, Revision: 1, Complete: true},
			Helm:    &helmrelease.Release{Manifest: "kind: Secret\nstringData: {password: " + password + "}\n"},
			State:   &record.State{Format: 1},
		}
		r.Seal(salt)
		return r
	}
	proof := sealed("1234", "of the record").Proof()
	if proof == "" || proof != sealed("1234", "of the record").Proof() {
		t.Fatalf("a record that is made again has another proof than %q", proof)
	}
	for salt, guessed := range map[string]string{"": "1234", "guessed": "1234", "of the record": "4321"} {
		if sealed(guessed, salt).Proof() == proof {
			t.Errorf("with salt %q and password %s it is the same", salt, guessed)
		}
	}
}
