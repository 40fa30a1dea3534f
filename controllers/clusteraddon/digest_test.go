// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"crypto/sha256"
	"encoding/hex"
	"testing"

	"github.com/google/go-cmp/cmp"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/wanted"
	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/render/job"
)

// TestDigestStays pins what a digest is taken of: another one makes a new revision
// of every add-on of every cluster.
func TestDigestStays(t *testing.T) {
	const begins, plain = `{"Version":1,"Artifact":"sha256:a","Values":{"b":1},"Namespace":"apps","Name":"web",`, `"Readiness":null,"Facts":{}`
	for name, tc := range map[string]struct {
		change func(*inputs)
		facts  job.FactsUsed
		ends   string
	}{
		"a chart":                         {func(*inputs) {}, factsNone, plain + `}`},
		"a chart with patches":            {func(in *inputs) { in.Patches = []addonsv1.Patch{{Patch: "p"}} }, factsNone, plain + `,"Patches":[{"patch":"p"}]}`},
		"a chart whose CRDs are made":     {func(in *inputs) { in.CRDPolicy = addonsv1.CRDPolicyCreateReplace }, factsNone, plain + `}`},
		"a chart whose CRDs are left out": {func(in *inputs) { in.CRDPolicy = addonsv1.CRDPolicySkip }, factsNone, plain + `,"CRDPolicy":"Skip"}`},
		"a chart with a check that asked for a version": {
			func(in *inputs) {
				in.Readiness = []addonsv1.ReadinessCheck{{APIVersion: "batch/v1", Kind: "Job", Expression: "true"}}
			}, job.FactsUsed{KubeVersion: "v1.36.3"},
			`"Readiness":[{"apiVersion":"batch/v1","kind":"Job","expression":"true"}],"Facts":{"kubeVersion":"v1.36.3"}}`,
		},
		"a kustomization": {func(in *inputs) {
			in.chart.Kind = artifact.KindKustomization
			in.Kustomization = &addonsv1.KustomizationSource{Directory: "overlays/prod"}
		}, factsNone, plain + `,"Kind":"kustomization","Directory":"overlays/prod"}`},
	} {
		in := &inputs{artifact: "sha256:a", values: map[string]any{"b": 1}, Addon: &wanted.Addon{Addon: addonsv1.Addon{Namespace: "apps", Name: "web"}}}
		tc.change(in)
		sum := sha256.Sum256([]byte(begins + tc.ends))
		if got, want := in.digest(tc.facts), "sha256:"+hex.EncodeToString(sum[:]); got != want {
			t.Errorf("%s: got %s, want that of %s", name, got, begins+tc.ends)
		}
	}
}

func TestVersionOfFiles(t *testing.T) {
	in := &inputs{artifact: "sha256:0123456789abcdef0123"}
	if got := in.filesVersion(); got != "sha256-0123456789ab" {
		t.Errorf("got %s", got)
	}
	in.chart.Chart.Version = "v1.2"
	if got := in.filesVersion(); got != "v1.2" {
		t.Errorf("got %s", got)
	}
}

func TestTerms(t *testing.T) {
	now := wantedAddon("now", "web")
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
		in      *inputs
		settled bool
		want    deliver.Terms
	}{
		"its inputs can't be had":                  {record: record("other", "there"), want: terms("other", "there")},
		"it isn't installed as it is to be":        {record: record("other", "there"), in: &inputs{version: "here"}, want: terms("other", "there")},
		"it comes from elsewhere, and is the same": {record: record("other", "there"), in: &inputs{version: "here"}, settled: true, want: terms(spec, "here")},
		"its values are there, and not installed":  {record: record("other", "there"), in: &inputs{optional: "ConfigMap/more/values"}, want: terms("other", "there")},
		"its values are there, and installed":      {record: record(spec, ""), in: &inputs{optional: "ConfigMap/more/values"}, settled: true, want: withOptional(terms(spec, ""), "ConfigMap/more/values")},
		"its ConfigMap was touched":                {record: record(spec, "version 1"), in: &inputs{version: "version 2"}, settled: true, want: terms(spec, "version 1")},
	} {
		if diff := cmp.Diff(tc.want, termsOf(&now, tc.record, tc.in, tc.settled)); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}
}

// Fields for which nothing is installed otherwise are no part of a spec's digest.
func TestSpecDigest(t *testing.T) {
	plain, other, more := wantedAddon("platform", "web"), wantedAddon("platform", "web"), wantedAddon("platform", "web")
	more.Drift, more.Lifecycle = &addonsv1.Drift{Policy: addonsv1.DriftPolicyReport}, &addonsv1.AddonLifecycle{Present: addonsv1.PresentBeforeUpgrade}
	if plain.SpecDigest() != more.SpecDigest() {
		t.Error("its drift policy or its lifecycle makes a difference")
	}
	if other.ValuesTemplate = "a: b"; plain.SpecDigest() == other.SpecDigest() {
		t.Error("its values make none")
	}
}

// An add-on never takes over the release of its own name: its adoption policy is for that.
func TestAdoptedRelease(t *testing.T) {
	plain := wantedAddon("platform", "web")
	own := plain.Release()
	for name, tc := range map[string]struct {
		from *addonsv1.ReleaseReference
		want deliver.Release
	}{
		"none":             {},
		"its own":          {from: &addonsv1.ReleaseReference{Name: own.Name, StorageNamespace: own.Namespace}},
		"its own, unnamed": {from: &addonsv1.ReleaseReference{}},
		"another":          {from: &addonsv1.ReleaseReference{Name: "previous"}, want: deliver.Release{Namespace: own.Namespace, Name: "previous"}},
		"elsewhere":        {from: &addonsv1.ReleaseReference{StorageNamespace: "flux"}, want: deliver.Release{Namespace: "flux", Name: own.Name}},
	} {
		a := wantedAddon("platform", "web")
		a.AdoptRelease = tc.from
		if got := a.AdoptedRelease(); got != tc.want {
			t.Errorf("%s: got %v, want %v", name, got, tc.want)
		}
	}
}
