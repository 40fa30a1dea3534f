// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/wanted"
	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/render/job"
)

// stillHolds says whether the questions would get the same answers now. It can't tell for all API
// versions while some can't be discovered.
func stillHolds(asked job.FactsUsed, facts job.Facts, missing []string) bool {
	return asked.APIVersions != "" && len(missing) > 0 || asked.Holds(withPrevious(facts, missing, asked))
}

// withPrevious adds previous group versions that can't be discovered now: they aren't gone.
func withPrevious(facts job.Facts, missing []string, asked job.FactsUsed) job.Facts {
	for apiVersion, had := range asked.Has {
		if had && slices.ContainsFunc(missing, func(gv string) bool { return apiVersion == gv || strings.HasPrefix(apiVersion, gv+"/") }) {
			facts.APIVersions = append(slices.Clip(facts.APIVersions), apiVersion)
		}
	}
	return facts
}

// digestVersion is part of every digest: raising it makes every add-on of every
// cluster a new revision, so it changes only with what a digest means. changesInputsAlone has to know it then: a change
// for another version isn't one of inputs.
const digestVersion = 1

// digest returns "sha256:" and 64 hex digits of all that decides which objects an add-on has, with
// the facts about the cluster that its chart asked about.
func (in *inputs) digest(facts job.FactsUsed) string {
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
		Kind      artifact.Kind    `json:",omitempty"`
		Directory string           `json:",omitempty"`
		Patches   []addonsv1.Patch `json:",omitempty"`
		// CRDPolicy only if it isn't the default, for the same reason.
		CRDPolicy addonsv1.CRDPolicy `json:",omitempty"`
	}{
		digestVersion, in.artifact, in.values, in.Release().Namespace, in.Name, in.Readiness, facts, in.TemplateReleaseName,
		in.chart.Kind, in.Directory(), in.Patches, policy,
	})
}

// settled reports whether the newest record is deployed, of these inputs, with valid certificates.
func (q rendering) settled(ctx context.Context, in *inputs, record deliver.Summary) (bool, error) {
	if record.Status != deliver.StatusDeployed || !q.proofs.Prove(record) || q.renews(record) {
		return false, nil
	}
	digest, err := q.digestNow(ctx, in, record.FactsUsed)
	if err != nil {
		return false, err
	}
	return record.Settled(digest), nil
}

// digestNow returns the digest of the inputs, with the facts that the record's rendering asked
// about. If these have changed, it returns that with all facts of the cluster.
func (q rendering) digestNow(ctx context.Context, in *inputs, factsUsed string) (string, error) {
	var asked job.FactsUsed
	if factsUsed == "" {
		return in.digest(asked), nil
	}
	if err := json.Unmarshal([]byte(factsUsed), &asked); err != nil {
		return "", fmt.Errorf("facts in the record of release %s: %w", in.Name, err)
	}
	if reflect.ValueOf(asked).IsZero() {
		return in.digest(asked), nil
	}
	q.kinds.Ensure(q.workload.Name, q.workload.Conn, asked)
	facts, missing, err := q.workload.Facts(ctx)
	if err != nil {
		return "", err
	}
	if stillHolds(asked, facts, missing) {
		return in.digest(asked), nil
	}
	return in.digest(job.FactsUsed{APIVersions: wanted.Hash(facts)}), nil
}
