// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	helmcommon "helm.sh/helm/v4/pkg/release/common"
	helmrelease "helm.sh/helm/v4/pkg/release/v1"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
)

// deployedBefore returns the revision that a failed upgrade is rolled back to; false if there is
// none, or the upgrade isn't to be rolled back. The failed one says which it was. One that has failed only to delete old objects
// works.
func deployedBefore(records []Summary, want *Desired) (Summary, bool) {
	newest := records[0]
	if want.OnFailure != addonsv1.FailurePolicyRollBack || !newest.Complete || newest.RolledBack != "" || strings.HasPrefix(newest.Failure, ReasonPruneFailed) {
		return Summary{}, false
	}
	i := slices.IndexFunc(records, func(s Summary) bool { return s.Status == StatusDeployed })
	if i < 1 || newest.Previous == "" || records[i].Proof() != newest.Previous || records[i].Transferred() {
		return Summary{}, false
	}
	return records[i], true
}

// rollBack records a revision with what the last deployed one had. Nothing is rendered. CRDs of
// crds/ stay as they are, as in Helm.
func (r *run) rollBack(ctx context.Context) error {
	failed := r.records[0]
	to, _ := deployedBefore(r.records, r.want)
	old, err := r.load(ctx, to)
	if err != nil {
		return err
	}
	if !old.IsIntact() {
		return &record.UnreadableError{Secret: r.release.Namespace + "/" + to.SecretName, Err: record.ErrChanged}
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
func (r *run) copyOf(old *record.Record, failed Summary) *record.Record {
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

// crdsOfRollback are the CRDs of crds/ that a rollback leaves: its record doesn't have them.
func (r *run) crdsOfRollback() []record.Entry {
	if !r.isRollback() {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(r.rec.State.Inventory), func(e record.Entry) bool { return !e.CRD })
}

// isRollback reports whether the revision is one that was deployed before the last.
func (r *run) isRollback() bool { return r.rec.RolledBack != "" }

// hookEvents are those before and after the objects of the revision are applied.
func (r *run) hookEvents() (before, after helmrelease.HookEvent) {
	switch {
	case r.isRollback():
		return helmrelease.HookPreRollback, helmrelease.HookPostRollback
	case r.upgrading():
		return helmrelease.HookPreUpgrade, helmrelease.HookPostUpgrade
	}
	return helmrelease.HookPreInstall, helmrelease.HookPostInstall
}

// rolledBackOutcome is that of an add-on whose upgrade failed, and which is as it was before.
func rolledBackOutcome(s Summary, now time.Time) Outcome {
	o := readyOutcome(s)
	o.Phase, o.Reason = addonsv1.AddonFailed, ReasonRolledBack
	o.Message = fmt.Sprintf("The upgrade failed and was rolled back to version %s, as revision %d. It is tried again when what is to be installed changes, or on request. It failed with %s",
		s.Version, s.Revision, s.Failure)
	if again := triesAgain(s); !again.IsZero() {
		o.RetryAfter = max(again.Sub(now), time.Second)
		o.Message = fmt.Sprintf("%s. Its certificates are to be renewed: it is tried again for that after %s", o.Message, again.UTC().Format(time.RFC3339))
	}
	return o
}
