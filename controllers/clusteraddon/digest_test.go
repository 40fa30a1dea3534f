// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/inputs"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/test/addons"
)

func TestTerms(t *testing.T) {
	now := addons.Wanted("now", "web")
	now.DataPolicy, now.Spec.ServiceAccountName = addonsv1.DataPolicyDelete, "deployer"
	now.DependsOn, now.Spec.DeletionPolicy = []string{"base"}, addonsv1.DeletionPolicyOrphan
	spec := now.SpecDigest()
	record := func(spec, place string) deliver.Summary {
		return deliver.Summary{Terms: deliver.Terms{Stack: "previous", DeletionPolicy: addonsv1.DeletionPolicyDelete, Spec: spec, ArtifactVersion: place}}
	}
	terms := func(spec, place string) deliver.Terms {
		return deliver.Terms{
			Stack: "now", DeletionPolicy: addonsv1.DeletionPolicyOrphan, DataPolicy: addonsv1.DataPolicyDelete, ServiceAccount: "deployer",
			DependsOn: []string{"base"}, Spec: spec, ArtifactVersion: place,
		}
	}
	withOptional := func(terms deliver.Terms, optional string) deliver.Terms {
		terms.Optional = optional
		return terms
	}
	for name, tc := range map[string]struct {
		record  deliver.Summary
		in      *inputs.Inputs
		settled bool
		want    deliver.Terms
	}{
		"its inputs can't be had":                  {record: record("other", "there"), want: terms("other", "there")},
		"it isn't installed as it is to be":        {record: record("other", "there"), in: &inputs.Inputs{Version: "here"}, want: terms("other", "there")},
		"it comes from elsewhere, and is the same": {record: record("other", "there"), in: &inputs.Inputs{Version: "here"}, settled: true, want: terms(spec, "here")},
		"its values are there, and not installed":  {record: record("other", "there"), in: &inputs.Inputs{Optional: "ConfigMap/more/values"}, want: terms("other", "there")},
		"its values are there, and installed":      {record: record(spec, ""), in: &inputs.Inputs{Optional: "ConfigMap/more/values"}, settled: true, want: withOptional(terms(spec, ""), "ConfigMap/more/values")},
		"its ConfigMap was touched":                {record: record(spec, "version 1"), in: &inputs.Inputs{Version: "version 2"}, settled: true, want: terms(spec, "version 1")},
	} {
		if diff := cmp.Diff(tc.want, termsOf(&now, tc.record, tc.in, tc.settled)); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}
}
