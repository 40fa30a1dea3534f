// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"crypto/sha256"
	"encoding/hex"
	"testing"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/render/job"
)

// TestDigestStays pins what a digest is taken of: another one makes a new revision
// of every add-on of every cluster.
func TestDigestStays(t *testing.T) {
	base := func(change func(*inputs)) *inputs {
		in := &inputs{artifact: "sha256:a", values: map[string]any{"b": 1}, addon: &addon{Addon: addonsv1.Addon{Namespace: "apps", Name: "web"}}}
		change(in)
		return in
	}
	cases := map[string]struct {
		in   *inputs
		text string
	}{
		"a chart": {
			base(func(*inputs) {}),
			`{"Version":1,"Artifact":"sha256:a","Values":{"b":1},"Namespace":"apps","Name":"web","Readiness":null,"Facts":{}}`,
		},
		"a chart with patches": {
			base(func(in *inputs) { in.Patches = []addonsv1.Patch{{Patch: "p"}} }),
			`{"Version":1,"Artifact":"sha256:a","Values":{"b":1},"Namespace":"apps","Name":"web","Readiness":null,"Facts":{},"Patches":[{"patch":"p"}]}`,
		},
		"a chart whose CRDs are made": {
			base(func(in *inputs) { in.CRDPolicy = addonsv1.CRDPolicyCreateReplace }),
			`{"Version":1,"Artifact":"sha256:a","Values":{"b":1},"Namespace":"apps","Name":"web","Readiness":null,"Facts":{}}`,
		},
		"a chart whose CRDs are left out": {
			base(func(in *inputs) { in.CRDPolicy = addonsv1.CRDPolicySkip }),
			`{"Version":1,"Artifact":"sha256:a","Values":{"b":1},"Namespace":"apps","Name":"web","Readiness":null,"Facts":{},"CRDPolicy":"Skip"}`,
		},
		"a kustomization": {
			base(func(in *inputs) {
				in.chart.Kind = artifact.KindKustomization
				in.Kustomization = &addonsv1.KustomizationSource{Directory: "overlays/prod"}
			}),
			`{"Version":1,"Artifact":"sha256:a","Values":{"b":1},"Namespace":"apps","Name":"web","Readiness":null,"Facts":{},"Kind":"kustomization","Directory":"overlays/prod"}`,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := c.in.digest(job.FactsUsed{})
			sum := sha256.Sum256([]byte(c.text))
			if want := "sha256:" + hex.EncodeToString(sum[:]); got != want {
				t.Errorf("got %s, want that of %s", got, c.text)
			}
		})
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
