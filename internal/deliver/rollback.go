// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"context"
	"fmt"
	"slices"

	helmcommon "helm.sh/helm/v4/pkg/release/common"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
)

// rollBack records a revision with what the last deployed one had. Nothing is rendered. CRDs of
// crds/ stay as they are, as in Helm.
func (r revisionMaker) rollBack(ctx context.Context) error {
	failed := r.records[0]
	to, _ := deployedBefore(r.records, r.want)
	return r.repeat(ctx, to, func(old *record.Record) *record.Record { return r.rollbackTo(old, failed) })
}

// restore records a revision with what an earlier one had that was made with the wanted spec and inputs. Nothing is
// rendered, so the inputs may be gone by now.
func (r revisionMaker) restore(ctx context.Context) error {
	to, err := r.recorded()
	if err != nil {
		return err
	}
	number := r.records[0].Revision + 1
	return r.repeat(ctx, to, func(old *record.Record) *record.Record { return r.copyOf(old, number, helmcommon.StatusPendingUpgrade) })
}

// recorded returns the newest proven revision with the wanted spec and inputs.
func (r revisionMaker) recorded() (Summary, error) {
	at := slices.IndexFunc(r.records, func(s Summary) bool {
		return s.Complete && s.Spec == r.want.Spec && s.HasInputs(r.want.Inputs) && !s.Transferred() && s.Status != StatusUninstalling && r.isProven(s)
	})
	if at < 0 {
		return Summary{}, &stopped{r.refusal(addonsv1.AddonPending, ReasonInputReplaced, "No release record has what the revision was made with")}
	}
	return r.records[at], nil
}

// repeat records a revision that a function makes of an older one.
func (r revisionMaker) repeat(ctx context.Context, to Summary, copied func(old *record.Record) *record.Record) error {
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
	return r.create(ctx, copied(old), inventory, nil, objects)
}

// rollbackTo returns the record of an older revision as that of the rollback of a failed one, pending.
func (r revisionMaker) rollbackTo(old *record.Record, failed Summary) *record.Record {
	rec := r.copyOf(old, failed.Revision+1, helmcommon.StatusPendingRollback)
	rec.FactsUsed = failed.FactsUsed // what is wanted is compared with what failed
	rec.RolledBack, rec.Failure = failed.Digest, failed.Failure
	return rec
}

// copyOf returns the record of an older revision as a new one.
func (r revisionMaker) copyOf(old *record.Record, number int, status helmcommon.Status) *record.Record {
	now := r.now()
	release, info := *old.Helm, *old.Helm.Info
	info.Status, info.LastDeployed = status, now
	info.Description = fmt.Sprintf("Rollback to %d", old.Revision)
	release.Version, release.Info = number, &info
	summary := r.newSummary(number, status)
	summary.Digest, summary.Spec, summary.RenewAt, summary.FactsUsed = old.Digest, old.Spec, old.RenewAt, old.FactsUsed
	summary.Inputs, summary.Optional = old.Inputs, old.Optional
	summary.Chart, summary.Version, summary.AppVersion = old.Chart, old.Version, old.AppVersion
	summary.Artifact, summary.ArtifactVersion = old.Artifact, old.ArtifactVersion
	rec := &record.Record{
		Summary: summary, Helm: &release, WatchFilter: r.want.WatchFilter,
		State: &record.State{Format: 1, Generated: old.State.Generated, Sensitive: old.State.Sensitive},
	}
	rec.Seal()
	return rec
}
