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
func (r revisionMaker) isSame(ctx context.Context, made *record.Record) (bool, error) {
	if len(r.records) == 0 || r.records[0].Status != StatusDeployed || !r.isProven(r.records[0]) || r.records[0].Transferred() || r.want.Again {
		return false, nil
	}
	rec, err := r.load(ctx, r.records[0])
	if err != nil || !r.believes(rec) || rec.RolledBack != "" {
		return false, err
	}
	sameChart := made.Artifact == rec.Artifact && made.Chart == rec.Chart && made.Version == rec.Version && made.AppVersion == rec.AppVersion
	if made.Holds() == "" || made.Holds() != rec.Holds() || !sameChart || made.Spec != rec.Spec || !made.RenewAt.Equal(rec.RenewAt) ||
		!reflect.DeepEqual(inJSON(made.Helm.Config), inJSON(rec.Helm.Config)) || !reflect.DeepEqual(made.State.Generated, rec.State.Generated) {
		return false, nil
	}
	is := rec.Summary
	is.Digest, is.FactsUsed = made.Digest, made.FactsUsed
	r.rec = rec
	return r.rewrite(ctx, rec, is)
}

// inJSON returns values as a record has them.
func inJSON(values map[string]any) (stored map[string]any) {
	data, err := json.Marshal(values)
	if err != nil || json.Unmarshal(data, &stored) != nil {
		return values // which equals nothing that is stored
	}
	return stored
}
