// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"context"
	"fmt"

	helmcommon "helm.sh/helm/v4/pkg/release/common"

	"github.com/cluster-chandler/chandler/internal/deliver/record"
)

// rollBack records a revision with what the last deployed one had. Nothing is rendered. CRDs of
// crds/ stay as they are, as in Helm.
func (r revisionMaker) rollBack(ctx context.Context) error {
	failed := r.records[0]
	to, _ := deployedBefore(r.records, r.want)
	old, err := r.load(ctx, to)
	if err != nil {
		return err
	}
	if !old.IsIntact() {
		return &record.Fault{Kind: record.Damaged, Secret: r.release.Namespace + "/" + to.SecretName, Err: record.ErrChanged}
	}
	objects, err := old.Manifest()
	if err != nil {
		return err
	}
	inventory, _, err := r.inherit(ctx)
	if err != nil {
		return err
	}
	if objects, err = r.scope.Prepare(objects); err != nil {
		return err
	}
	return r.create(ctx, r.copyOf(old, failed), inventory, nil, objects)
}

// copyOf returns the record of an older revision as a new one, pending.
func (r revisionMaker) copyOf(old *record.Record, failed Summary) *record.Record {
	now, status := r.now(), helmcommon.StatusPendingRollback
	release, info := *old.Helm, *old.Helm.Info
	info.Status, info.LastDeployed = status, now
	info.Description = fmt.Sprintf("Rollback to %d", old.Revision)
	release.Version, release.Info = failed.Revision+1, &info
	summary := r.newSummary(failed.Revision+1, status)
	summary.Digest, summary.Spec, summary.RenewAt = old.Digest, old.Spec, old.RenewAt
	summary.Chart, summary.Version, summary.AppVersion = old.Chart, old.Version, old.AppVersion
	summary.Artifact, summary.ArtifactVersion = old.Artifact, old.ArtifactVersion
	summary.FactsUsed = failed.FactsUsed // what is wanted is compared with what failed
	summary.RolledBack, summary.Failure = failed.Digest, failed.Failure
	rec := &record.Record{
		Summary: summary, Helm: &release, WatchFilter: r.want.WatchFilter,
		State: &record.State{Format: 1, Generated: old.State.Generated, Sensitive: old.State.Sensitive},
	}
	rec.Seal()
	return rec
}
