// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"errors"
	"fmt"
	"slices"
	"time"

	helmcommon "helm.sh/helm/v4/pkg/release/common"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
)

// step is what is to be done about an add-on that is wanted.
type step int

const (
	// stepSettled: nothing.
	stepSettled step = iota
	// stepRefuse: nothing, as it isn't ours.
	stepRefuse
	// stepBegin: make a new revision.
	stepBegin
	// stepResume: go on with the newest revision.
	stepResume
	// stepRollBack: make a revision of what was deployed before.
	stepRollBack
	// stepRolledBack: nothing, as that was done.
	stepRolledBack
)

// decision is a step and why it is refused, if it is.
type decision struct {
	step            step
	reason, message string
}

// next decides what to do about an add-on with these records, the newest first,
// when its inputs have this digest.
func next(records []Summary, digest string, want *Desired, now time.Time) decision {
	if len(records) == 0 {
		return decision{step: stepBegin}
	}
	newest := records[0]
	if d := refusal(records, want, now); d.step == stepRefuse {
		return d
	}
	renew := !want.Recorded && !newest.RenewAt.IsZero() && !now.Before(newest.RenewAt)
	isRollback := newest.Complete && newest.RolledBack != "" && newest.RolledBack == digest && !want.Again
	_, canRollBack := deployedBefore(records, want)
	switch status := helmcommon.Status(newest.Status); {
	case isRollback && status == helmcommon.StatusDeployed && (!renew || now.Before(triesAgain(newest))):
		return decision{step: stepRolledBack}
	case isRollback && status != helmcommon.StatusDeployed:
		return decision{step: stepResume}
	case newest.Digest == digest && status == helmcommon.StatusFailed && canRollBack:
		return decision{step: stepRollBack}
	case !newest.Complete, newest.Digest != digest, newest.Transferred(), renew:
		return decision{step: stepBegin}
	case status == helmcommon.StatusDeployed:
		return decision{step: stepSettled}
	case status == helmcommon.StatusFailed, status == helmcommon.StatusPendingInstall, status == helmcommon.StatusPendingUpgrade:
		return decision{step: stepResume}
	}
	return decision{step: stepBegin} // it was being removed, and is wanted again
}

// againAfter is how long a rollback stays whose certificates are to be renewed.
const againAfter = 24 * time.Hour

// triesAgain returns when what was rolled back is tried again to renew its certificates; zero if it has none.
func triesAgain(rollback Summary) time.Time {
	if again := rollback.ModifiedAt.Add(againAfter); !rollback.RenewAt.IsZero() && rollback.RenewAt.Before(again) {
		return again
	}
	return rollback.RenewAt
}

// refusal tells why a release isn't the add-on's to change, if it isn't.
func refusal(records []Summary, want *Desired, now time.Time) decision {
	newest := records[0]
	switch {
	case newest.Owner != "" && want.Owner != "" && !newest.IsOwnedBy(want.Owner):
		return decision{stepRefuse, ReasonReleaseOwnedByOther, fmt.Sprintf(
			"ClusterAddon %s has release %s in this cluster already. Change the add-on's name or namespace in one of the two",
			newest.Owner, newest.Release)}
	case takenOver(records, want):
		return decision{stepRefuse, ReasonReleaseTakenOver, fmt.Sprintf(
			"Another management cluster has a ClusterAddon %s, too, and has taken over release %s with revision %d. Remove the Cluster from one of them. To take the release back, delete this ClusterAddon: it is made again",
			want.Owner, newest.Release, newest.Revision)}
	case !newest.Owned && newest.Status == string(helmcommon.StatusUninstalled):
		return decision{} // what `helm uninstall --keep-history` left
	case !newest.Owned && want.Adoption != addonsv1.AdoptionPolicyAdopt && want.Adoption != addonsv1.AdoptionPolicyAdoptIfEqual:
		return decision{stepRefuse, ReasonReleaseExists, fmt.Sprintf(
			"Helm installed a release %s (revision %d, %s). Uninstall it, or set "+object.AdoptionPolicyField+" to Adopt or AdoptIfEqual",
			newest.Release, newest.Revision, newest.Status)}
	case isLocked(newest, want, now):
		return decision{stepRefuse, ReasonReleaseLocked, fmt.Sprintf(
			"Helm is working on release %s: its revision %d is %s", newest.Release, newest.Revision, newest.Status)}
	}
	return decision{}
}

// isLocked reports whether Helm is working on a release, and not for too long.
func isLocked(newest Summary, want *Desired, now time.Time) bool {
	return !newest.Complete && newest.Pending() && now.Before(newest.ModifiedAt.Add(want.ProgressDeadline))
}

// takenOver says whether the ClusterAddon ran the release, and then another one of its name,
// which is in another management cluster, wrote the newest record. A ClusterAddon that hasn't run it is
// new, as after a move: it continues with what is there.
func takenOver(records []Summary, want *Desired) bool {
	newest := records[0]
	if newest.OwnerUID == "" || want.OwnerUID == "" || newest.OwnerUID == want.OwnerUID {
		return false
	}
	if want.Proof != "" && !newest.IsProvenBy(want.Proof) && record.ProofOwner(want.Proof) != newest.OwnerUID {
		return true
	}
	return slices.ContainsFunc(records, func(s Summary) bool { return s.OwnerUID == want.OwnerUID })
}

// deployedBefore returns the revision that a failed upgrade is rolled back to; false if there is
// none, or the upgrade isn't to be rolled back. The failed one says which it was. A revision that has failed only to
// delete old objects works.
func deployedBefore(records []Summary, want *Desired) (Summary, bool) {
	newest := records[0]
	if want.OnFailure != addonsv1.FailurePolicyRollBack || !newest.Complete || newest.RolledBack != "" || newest.FailureReason() == ReasonPruneFailed {
		return Summary{}, false
	}
	i := slices.IndexFunc(records, func(s Summary) bool { return s.Status == StatusDeployed })
	if i < 1 || newest.Previous == "" || records[i].Proof() != newest.Previous || records[i].Transferred() {
		return Summary{}, false
	}
	return records[i], true
}

// A record is a claim: whoever may write Secrets in its namespace can make or change one. So its proof is
// kept in the management cluster, and given to each call. Nothing is applied, run, repaired or removed by a
// record that isn't proven. The newest record of a wanted add-on may lack the proof for a good reason. Its
// writer crashed before the proof was kept, or the cluster came from another management cluster. Then the
// revision is made once more. If the record has just that, it is proven. Else it is left behind by the next
// revision, which takes over those objects alone that the API server shows to be the add-on's.

// ErrUnproven says that nothing was done, because the newest record of the release isn't proven.
var ErrUnproven = errors.New("its release record isn't as this instance wrote it")

// history is what a call knows of a release's records.
type history struct {
	records []Summary // the newest first
	proof   string    // of the record that was written last, "" for none
}

// isProven reports whether a record is the one that the proof is of, or one that was deployed before that: each record
// names the proof of the one before.
func (r *history) isProven(s Summary) bool {
	proof := r.proof
	for _, known := range r.records {
		if s.IsProvenBy(proof) {
			return true
		}
		if known.IsProvenBy(proof) {
			proof = known.Previous
		}
	}
	return s.IsProvenBy(proof)
}

// believes reports whether a record is proven with what it holds.
func (r *history) believes(rec *record.Record) bool { return r.isProven(rec.Summary) && rec.IsIntact() }
