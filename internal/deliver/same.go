// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"context"
	"encoding/json"
	"reflect"

	"github.com/cluster-chandler/chandler/internal/deliver/record"
)

// isSame reports whether a new revision would have just what is deployed: the cluster's facts changed alone, as kinds
// came that the chart doesn't mind.
func (r revisionMaker) isSame(deployed, made *record.Record) bool {
	if deployed == nil || deployed.Transferred() || deployed.IsRollback() || r.want.Again || made.Holds() == "" || made.Holds() != deployed.Holds() {
		return false
	}
	return made.Artifact == deployed.Artifact && made.Chart == deployed.Chart && made.Version == deployed.Version &&
		made.AppVersion == deployed.AppVersion && made.Spec == deployed.Spec && made.RenewAt.Equal(deployed.RenewAt) &&
		reflect.DeepEqual(inJSON(made.Helm.Config), inJSON(deployed.Helm.Config)) && reflect.DeepEqual(made.State.Generated, deployed.State.Generated)
}

// takeFacts brings new facts of the cluster into the record of what is deployed, which stays. Hooks don't run for them.
func (r revisionMaker) takeFacts(ctx context.Context, deployed, made *record.Record) error {
	is := deployed.Summary
	is.Digest, is.FactsUsed = made.Digest, made.FactsUsed
	r.rec = deployed
	return r.rewrite(ctx, deployed, is)
}

// inJSON returns values as a record has them.
func inJSON(values map[string]any) (stored map[string]any) {
	data, err := json.Marshal(values)
	if err != nil || json.Unmarshal(data, &stored) != nil {
		return values // which equals nothing that is stored
	}
	return stored
}
