// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver"
)

func TestTerms(t *testing.T) {
	now := wantedAddon("now", "web")
	now.DataPolicy, now.serviceAccount = addonsv1.DataPolicyDelete, "deployer"
	now.DependsOn, now.deletionPolicy = []string{"base"}, addonsv1.DeletionPolicyOrphan
	spec := specDigest(&now)
	record := func(spec, place string) deliver.Summary {
		return deliver.Summary{Stack: "former", DeletionPolicy: addonsv1.DeletionPolicyDelete, Spec: spec, ArtifactVersion: place}
	}
	terms := func(spec, place string) deliver.Terms {
		return deliver.Terms{
			Stack: "now", DeletionPolicy: addonsv1.DeletionPolicyOrphan, DataPolicy: addonsv1.DataPolicyDelete, ServiceAccount: "deployer",
			DependsOn: []string{"base"}, Spec: spec, ArtifactVersion: place,
		}
	}
	for name, tc := range map[string]struct {
		record  deliver.Summary
		in      *inputs
		settled bool
		want    deliver.Terms
	}{
		"its inputs can't be had":                  {record: record("other", "there"), want: terms("other", "there")},
		"it isn't installed as it is to be":        {record: record("other", "there"), in: &inputs{version: "here"}, want: terms("other", "there")},
		"it comes from elsewhere, and is the same": {record: record("other", "there"), in: &inputs{version: "here"}, settled: true, want: terms(spec, "here")},
		"its ConfigMap was touched":                {record: record(spec, "version 1"), in: &inputs{version: "version 2"}, settled: true, want: terms(spec, "version 1")},
	} {
		if diff := cmp.Diff(tc.want, termsOf(&now, tc.record, tc.in, tc.settled)); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}
}
