// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/render/job"
)

// settled reports whether the newest record is deployed, of these inputs, with valid certificates.
func (q rendering) settled(ctx context.Context, in *inputs, record deliver.Summary) (bool, error) {
	if record.Status != deliver.StatusDeployed || !q.isProven(record) || q.renews(record) {
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
	q.kinds.Ensure(q.workload.name, q.workload.conn, asked)
	facts, missing, err := q.workload.facts(ctx)
	if err != nil {
		return "", err
	}
	if stillHolds(asked, facts, missing) {
		return in.digest(asked), nil
	}
	return in.digest(job.FactsUsed{APIVersions: hash(facts)}), nil
}
