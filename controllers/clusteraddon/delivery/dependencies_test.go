// SPDX-License-Identifier: Apache-2.0

package delivery_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/checks"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/delivery"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/inputs"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/releases"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/rendering"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/result"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/wanted"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/reasons"
	"github.com/cluster-chandler/chandler/internal/render/job"
	"github.com/cluster-chandler/chandler/test/addons"
)

// A wanted add-on may take over what a leaving one has until it is installed. One that fails isn't waited for once it
// has applied its objects, or has tried each of them and the leaving one may be in the way.
func TestMayTakeOver(t *testing.T) {
	for name, tc := range map[string]struct {
		phase          addonsv1.AddonPhase
		reason         string
		tried, applied bool
		want           bool
	}{
		"it is being installed":               {phase: addonsv1.AddonInstalling, want: true},
		"it waits":                            {phase: addonsv1.AddonPending, want: true},
		"it is Ready":                         {phase: addonsv1.AddonReady, applied: true},
		"it is Degraded":                      {phase: addonsv1.AddonDegraded, applied: true},
		"it is Ready, and a request failed":   {phase: addonsv1.AddonReady, reason: reasons.Retrying, want: true},
		"another one has the release":         {phase: addonsv1.AddonFailed, reason: reasons.ReleaseTaken},
		"it fails before its objects":         {phase: addonsv1.AddonFailed, reason: deliver.ReasonHookFailed, want: true},
		"it has all, and fails":               {phase: addonsv1.AddonFailed, reason: deliver.ReasonHookFailed, tried: true, applied: true},
		"its CRD is refused":                  {phase: addonsv1.AddonFailed, reason: object.ReasonObjectRejected, want: true},
		"an object is refused, and all tried": {phase: addonsv1.AddonFailed, reason: object.ReasonObjectRejected, tried: true},
		"a field can't change, and all tried": {phase: addonsv1.AddonFailed, reason: object.ReasonImmutableField, tried: true},
		"another reason, and all were tried":  {phase: addonsv1.AddonFailed, reason: object.ReasonForbidden, tried: true, want: true},
	} {
		one := result.Addon{Status: addonsv1.AddonStatus{Phase: tc.phase, Reason: tc.reason}, Tried: tc.tried, Applied: tc.applied}
		if got := delivery.MayTakeOver(one); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestMayBringKinds(t *testing.T) {
	of := func(stack, name string, dependsOn ...string) wanted.Addon {
		return wanted.Addon{Stack: stack, Addon: addonsv1.Addon{Name: name, DependsOn: dependsOn}}
	}
	for name, tc := range map[string]struct {
		before, after string
		others        []wanted.Addon
		want          bool
	}{
		"nobody asks":                     {after: "apps/v1/Deployment,v1/Service"},
		"it brings a CRD":                 {after: "apiextensions.k8s.io/v1/CustomResourceDefinition,v1/Service", want: true},
		"it has no CRD any more":          {before: "apiextensions.k8s.io/v1/CustomResourceDefinition", after: "v1/Service", want: true},
		"it brings an API server":         {after: "apiregistration.k8s.io/v1/APIService", want: true},
		"another one depends on it":       {others: []wanted.Addon{of("platform", "dashboards", "operator")}, want: true},
		"one of another stack does":       {others: []wanted.Addon{of("team", "dashboards", "platform/operator")}, want: true},
		"one depends on another stack's":  {others: []wanted.Addon{of("team", "dashboards", "operator")}},
		"it depends on another one":       {others: []wanted.Addon{of("platform", "operator", "dashboards")}},
		"a kind is called almost like it": {after: "example.org/v1/MyCustomResourceDefinition"},
	} {
		t.Run(name, func(t *testing.T) {
			a := of("platform", "operator")
			if got := delivery.MayBringKinds(append(tc.others, a), &a, tc.before, tc.after); got != tc.want {
				t.Errorf("MayBringKinds() = %t", got)
			}
		})
	}
}

// A revision that has begun isn't held any more: half of it may be there.
func TestPreconditionsHoldWhatHasNotBegun(t *testing.T) {
	in := &inputs.Inputs{Artifact: "sha256:1", Addon: &wanted.Addon{Addon: addonsv1.Addon{Namespace: "n", Name: "web"}}}
	digest := in.Digest(job.FactsUsed{})
	shut, open := []addonsv1.ObjectsCondition{{Expression: "false"}}, []addonsv1.ObjectsCondition{{Expression: "true"}}
	for name, tc := range map[string]struct {
		conditions []addonsv1.ObjectsCondition
		record     deliver.Summary
		want       bool
	}{
		"there is none":              {},
		"it isn't installed":         {conditions: shut, want: true},
		"they hold":                  {conditions: open},
		"another one is installed":   {conditions: shut, record: deliver.Summary{Status: deliver.StatusDeployed, Digest: "other"}, want: true},
		"it has begun":               {conditions: shut, record: deliver.Summary{Status: "pending-upgrade", Digest: digest}},
		"it has failed":              {conditions: shut, record: deliver.Summary{Status: "failed", Digest: digest}},
		"another one has failed":     {conditions: shut, record: deliver.Summary{Status: "failed", Digest: "other"}, want: true},
		"a certificate of it is due": {conditions: shut, record: deliver.Summary{Status: deliver.StatusDeployed, Digest: digest}, want: true},
	} {
		in.Preconditions = tc.conditions
		of := checks.Checks{Addon: in.Addon, Memory: &checks.Memory{}}
		if held, err := delivery.UnmetPrecondition(t.Context(), rendering.Renderer{Proofs: &releases.Proofs{}}, of, in, tc.record); (held != nil) != tc.want || err != nil {
			t.Errorf("%s: %+v, %v", name, held, err)
		}
	}
}

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
		if diff := cmp.Diff(tc.want, delivery.TermsOf(&now, tc.record, tc.in, tc.settled)); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}
}
