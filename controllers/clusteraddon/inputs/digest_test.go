// SPDX-License-Identifier: Apache-2.0

package inputs_test

import (
	"crypto/sha256"
	"encoding/hex"
	"testing"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/inputs"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/wanted"
	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/render/job"
)

// TestDigestStays pins what a digest is taken of: another one makes a new revision
// of every add-on of every cluster.
func TestDigestStays(t *testing.T) {
	const begins, plain = `{"Version":1,"Artifact":"sha256:a","Values":{"b":1},"Namespace":"apps","Name":"web",`, `"Readiness":null,"Facts":{}`
	for name, tc := range map[string]struct {
		change func(*inputs.Inputs)
		facts  job.FactsUsed
		ends   string
	}{
		"a chart":                         {func(*inputs.Inputs) {}, job.FactsUsed{}, plain + `}`},
		"a chart with patches":            {func(in *inputs.Inputs) { in.Patches = []addonsv1.Patch{{Patch: "p"}} }, job.FactsUsed{}, plain + `,"Patches":[{"patch":"p"}]}`},
		"a chart whose CRDs are made":     {func(in *inputs.Inputs) { in.CRDPolicy = addonsv1.CRDPolicyCreateReplace }, job.FactsUsed{}, plain + `}`},
		"a chart whose CRDs are left out": {func(in *inputs.Inputs) { in.CRDPolicy = addonsv1.CRDPolicySkip }, job.FactsUsed{}, plain + `,"CRDPolicy":"Skip"}`},
		"a chart with a check that asked for a version": {
			func(in *inputs.Inputs) {
				in.Readiness = []addonsv1.ReadinessCheck{{APIVersion: "batch/v1", Kind: "Job", Expression: "true"}}
			}, job.FactsUsed{KubeVersion: "v1.36.3"},
			`"Readiness":[{"apiVersion":"batch/v1","kind":"Job","expression":"true"}],"Facts":{"kubeVersion":"v1.36.3"}}`,
		},
		"a kustomization": {func(in *inputs.Inputs) {
			in.Chart.Kind = artifact.KindKustomization
			in.Kustomization = &addonsv1.KustomizationSource{Directory: "overlays/prod"}
		}, job.FactsUsed{}, plain + `,"Kind":"kustomization","Directory":"overlays/prod"}`},
	} {
		in := &inputs.Inputs{Artifact: "sha256:a", Values: map[string]any{"b": 1}, Addon: &wanted.Addon{Addon: addonsv1.Addon{Namespace: "apps", Name: "web"}}}
		tc.change(in)
		sum := sha256.Sum256([]byte(begins + tc.ends))
		if got, want := in.Digest(tc.facts), "sha256:"+hex.EncodeToString(sum[:]); got != want {
			t.Errorf("%s: got %s, want that of %s", name, got, begins+tc.ends)
		}
	}
}

func TestVersionOfFiles(t *testing.T) {
	in := &inputs.Inputs{Artifact: "sha256:0123456789abcdef0123"}
	if got := in.FilesVersion(); got != "sha256-0123456789ab" {
		t.Errorf("got %s", got)
	}
	in.Chart.Chart.Version = "v1.2"
	if got := in.FilesVersion(); got != "v1.2" {
		t.Errorf("got %s", got)
	}
}
