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
	return r.repeat(ctx, to, &failed)
}

// restore records a revision with what an earlier one had that was made with the wanted spec and inputs. Nothing is
// rendered, so the inputs may be gone by now.
func (r revisionMaker) restore(ctx context.Context) error {
	to, err := r.recorded()
	if err != nil {
		return err
	}
	return r.repeat(ctx, to, nil)
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

// repeat records a revision with what an older one had. It is the rollback of the failed one, unless that is nil.
func (r revisionMaker) repeat(ctx context.Context, to Summary, failed *Summary) error {
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
	return r.create(ctx, r.copyOf(old, r.records[0].Revision+1, failed), inventory, nil, objects)
}

// copyOf returns the record of an older revision as a new one, pending. It is the rollback of the failed one, unless that
// is nil.
func (r revisionMaker) copyOf(old *record.Record, number int, failed *Summary) *record.Record {
	status := helmcommon.StatusPendingUpgrade
	if failed != nil {
		status = helmcommon.StatusPendingRollback
	}
	release, info := *old.Helm, *old.Helm.Info
	info.Status, info.LastDeployed = status, r.now()
	info.Description = fmt.Sprintf("Rollback to %d", old.Revision)
	release.Version, release.Info = number, &info
	summary := r.newSummary(number, status)
	summary.Digest, summary.Spec, summary.RenewAt, summary.FactsUsed = old.Digest, old.Spec, old.RenewAt, old.FactsUsed
	summary.Inputs, summary.Optional = old.Inputs, old.Optional
	summary.Chart, summary.Version, summary.AppVersion = old.Chart, old.Version, old.AppVersion
	summary.Artifact, summary.ArtifactVersion = old.Artifact, old.ArtifactVersion
	if failed != nil {
		summary.FactsUsed = failed.FactsUsed // what is wanted is compared with what failed
		summary.RolledBack, summary.Failure = failed.Digest, failed.Failure
	}
	rec := &record.Record{
		Summary: summary, Helm: &release, WatchFilter: r.want.WatchFilter,
		State: &record.State{Format: 1, Generated: old.State.Generated, Sensitive: old.State.Sensitive},
	}
	rec.Seal()
	return rec
}
