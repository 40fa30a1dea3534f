// SPDX-License-Identifier: Apache-2.0

package record_test

import (
	"strings"
	"testing"

	helmrelease "helm.sh/helm/v4/pkg/release/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

// TestStackRevisionProvesNothing has a record name the revision of its stack. A record of a version that didn't name it has
// the same proof, and one with a long text has a short one in the status.
func TestStackRevisionProvesNothing(t *testing.T) {
	is := record.Summary{
		Release: record.Release{Namespace: "web", Name: "web"}, Revision: 1, Complete: true, Content: "sha256:1", StackRevision: strings.Repeat("a", 300),
	}
	without := is
	without.StackRevision = ""
	if is.Proof() == "" || is.Proof() != without.Proof() {
		t.Errorf("%q, %q", is.Proof(), without.Proof())
	}
	for revision, length := range map[string]int{"web-1": 5, is.StackRevision: 253, "": 0} {
		m := &metav1.ObjectMeta{
			Namespace: "web", Name: record.SecretName("web", 1), Labels: map[string]string{"name": "web", "owner": "helm", "version": "1"},
			Annotations: map[string]string{"addons.cluster.x-k8s.io/stack-revision": revision},
		}
		if got, ok := record.SummaryOf(m); !ok || len(got.StackRevision) != length {
			t.Errorf("%d: %v, %q", length, ok, got.StackRevision)
		}
	}
}
