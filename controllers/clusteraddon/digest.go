// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/render"
)

// digestVersion is part of every digest: raising it makes every add-on of every
// cluster a new revision, so it changes only with what a digest means.
const digestVersion = 1

// digest of all that decides which objects an add-on has: the chart, kustomization
// or manifests, the values, the patches, the release, the readiness checks, and the chart's questions about
// the cluster with their answers. Form: "sha256:" and 64 hex digits.
func (in *inputs) digest(facts render.FactsUsed) (string, error) {
	return hash(struct {
		Version   int
		Artifact  string
		Values    map[string]any
		Namespace string
		Name      string
		Readiness []addonsv1.ReadinessCheck
		Facts     render.FactsUsed
		// TemplateName came later: without one, digests are what they were.
		TemplateName string `json:",omitempty"`
		// So did these: a chart without patches has none of them.
		Kind      artifact.Kind    `json:",omitempty"`
		Directory string           `json:",omitempty"`
		Patches   []addonsv1.Patch `json:",omitempty"`
	}{
		digestVersion, in.artifact, in.values, in.release.Namespace, in.release.Name, in.readiness, facts, in.templateName,
		in.chart.Kind, in.directory, in.patches,
	})
}

// specDigest identifies what a user wrote for an add-on.
func specDigest(a *addon) string {
	sum, err := hash(a.Addon)
	if err != nil {
		return ""
	}
	return sum
}

// postconditionsDigest identifies an add-on's postconditions, "" if it has none.
func postconditionsDigest(a *addon) string {
	if len(a.Postconditions) == 0 {
		return ""
	}
	sum, err := hash(a.Postconditions)
	if err != nil {
		return ""
	}
	return sum
}

// hash is the SHA-256 of v in JSON, in which maps are sorted by key.
func hash(v any) (string, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return "", fmt.Errorf("computing a digest: %w", err)
	}
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:]), nil
}
