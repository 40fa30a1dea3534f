// SPDX-License-Identifier: Apache-2.0

package inputs

import (
	"encoding/json"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/wanted"
	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/render/job"
)

// digestVersion is part of every digest: raising it makes every add-on of every
// cluster a new revision, so it changes only with what a digest means. changesInputsAlone has to know it then: a change
// for another version isn't one of inputs.
const digestVersion = 1

// Digest returns "sha256:" and 64 hex digits of all that decides which objects an add-on has, with
// the facts about the cluster that its chart asked about.
func (in *Inputs) Digest(facts job.FactsUsed) string {
	policy := in.CRDPolicy
	if policy == addonsv1.CRDPolicyCreateReplace {
		policy = ""
	}
	return wanted.Hash(struct {
		Version   int
		Artifact  string
		Values    map[string]any
		Namespace string
		Name      string
		Readiness []addonsv1.ReadinessCheck
		Facts     job.FactsUsed
		// TemplateName came later: without one, digests are what they were.
		TemplateName string `json:",omitempty"`
		// So did these: a chart without patches has none of them.
		Kind      artifact.Kind `json:",omitempty"`
		Directory string        `json:",omitempty"`
		job.Edits
		// CRDPolicy only if it isn't the default, for the same reason.
		CRDPolicy addonsv1.CRDPolicy `json:",omitempty"`
	}{
		digestVersion, in.Artifact, in.Values, in.Release().Namespace, in.Name, in.Readiness, facts, in.TemplateReleaseName,
		in.Chart.Kind, in.Directory(), in.Edits(), policy,
	})
}

// Edits returns what the add-on changes of rendered objects.
func (in *Inputs) Edits() job.Edits { return job.Edits{Patches: in.Patches} }

// DigestBy returns the digest with facts as a record has them, in JSON.
func (in *Inputs) DigestBy(factsUsed string) string {
	var asked job.FactsUsed
	_ = json.Unmarshal([]byte(factsUsed), &asked) // others have none
	return in.Digest(asked)
}
