// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"context"
	"encoding/json"
	"reflect"

	"github.com/cluster-chandler/chandler/internal/deliver/record"
)

// isSame reports whether a new revision would have just what is deployed: the cluster's facts changed alone, as kinds
// came that the chart doesn't mind. Then the record gets the new facts, and stays. Hooks don't run for them.
func (r *run) isSame(ctx context.Context, made *record.Record) (bool, error) {
	if len(r.records) == 0 || r.records[0].Status != StatusDeployed || !r.isProven(r.records[0]) || r.records[0].Transferred() || r.want.Again {
		return false, nil
	}
	rec, err := r.load(ctx, r.records[0])
	if err != nil || !r.believes(rec) || rec.RolledBack != "" {
		return false, err
	}
	made.Seal()
	is, deployed := made.Summary, rec.Summary
	sameChart := is.Artifact == deployed.Artifact && is.Chart == deployed.Chart && is.Version == deployed.Version && is.AppVersion == deployed.AppVersion
	if made.Holds() == "" || made.Holds() != rec.Holds() || !sameChart || is.Spec != deployed.Spec || !is.RenewAt.Equal(deployed.RenewAt) ||
		!reflect.DeepEqual(inJSON(made.Helm.Config), inJSON(rec.Helm.Config)) || !reflect.DeepEqual(made.State.Generated, rec.State.Generated) {
		return false, nil
	}
	is = deployed
	is.Digest, is.FactsUsed = made.Digest, made.FactsUsed
	if is, err = r.s.store.Rewrite(ctx, deployed, is); err != nil {
		return false, err
	}
	r.wrote.Store(true)
	r.records[0], r.proof = is, is.Proof()
	rec.Summary, r.rec = is, rec
	return true, nil
}

// inJSON returns values as a record has them.
func inJSON(values map[string]any) (stored map[string]any) {
	data, err := json.Marshal(values)
	if err != nil || json.Unmarshal(data, &stored) != nil {
		return values // which equals nothing that is stored
	}
	return stored
}
