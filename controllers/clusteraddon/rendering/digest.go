// SPDX-License-Identifier: Apache-2.0

package rendering

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/cluster-chandler/chandler/controllers/clusteraddon/inputs"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/wanted"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/render/job"
)

// StillHolds says whether the questions would get the same answers now. It can't tell for all API
// versions while some can't be discovered.
func StillHolds(asked job.FactsUsed, facts job.Facts, missing []string) bool {
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

// Settled reports whether the newest record is deployed, of these inputs, with valid certificates.
func (q Renderer) Settled(ctx context.Context, in *inputs.Inputs, record deliver.Summary) (bool, error) {
	if record.Status != deliver.StatusDeployed || !q.Proofs.Prove(record) || IsRenewalDue(record, q.Now) {
		return false, nil
	}
	digest, err := q.DigestNow(ctx, in, record.FactsUsed)
	if err != nil {
		return false, err
	}
	return record.Settled(digest), nil
}

// DigestNow returns the digest of the inputs, with the facts that the record's rendering asked
// about. If these have changed, it returns that with all facts of the cluster.
func (q Renderer) DigestNow(ctx context.Context, in *inputs.Inputs, factsUsed string) (string, error) {
	var asked job.FactsUsed
	if factsUsed == "" {
		return in.Digest(asked), nil
	}
	if err := json.Unmarshal([]byte(factsUsed), &asked); err != nil {
		return "", fmt.Errorf("facts in the record of release %s: %w", in.Name, err)
	}
	if reflect.ValueOf(asked).IsZero() {
		return in.Digest(asked), nil
	}
	q.Kinds.Ensure(q.Workload.Name, q.Workload.Conn, asked)
	facts, missing, err := q.Workload.Facts(ctx)
	if err != nil {
		return "", err
	}
	if StillHolds(asked, facts, missing) {
		return in.Digest(asked), nil
	}
	return in.Digest(job.FactsUsed{APIVersions: wanted.Hash(facts)}), nil
}

// IsRenewalDue reports whether a certificate of the record is to be renewed.
func IsRenewalDue(record deliver.Summary, now time.Time) bool {
	return !record.RenewAt.IsZero() && !now.Before(record.RenewAt)
}
