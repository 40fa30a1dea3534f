// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"slices"
	"time"

	helmcommon "helm.sh/helm/v4/pkg/release/common"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/deliver/outcome"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/internal/failure"
)

// Reasons for which no revision is made. They are stable API.
const (
	// ReasonReleaseLocked: Helm is working on the release.
	ReasonReleaseLocked = "ReleaseLocked"
	// ReasonInputReplaced: the values that the stack's revision was made with aren't there any more, in no record either.
	ReasonInputReplaced = "InputReplaced"
	// ReasonReleaseExists: Helm installed a release of this name.
	ReasonReleaseExists = "ReleaseExists"
	// ReasonReleaseOwnedByOther: another ClusterAddon installed a release of this name.
	ReasonReleaseOwnedByOther = "ReleaseOwnedByOther"
	// ReasonReleaseTakenOver: the ClusterAddon of this name in another management cluster
	// made the newest revision.
	ReasonReleaseTakenOver = "ReleaseTakenOver"
	// ReasonReadinessInvalid: a readiness check can't be compiled, or names an
	// object that the add-on doesn't have.
	ReasonReadinessInvalid = "ReadinessInvalid"
	// ReasonEmptyRendering: nothing was rendered, and objects are installed.
	ReasonEmptyRendering = "EmptyRendering"
)

// Step is what is to be done about an add-on that is wanted.
type Step int

const (
	// Settled: nothing.
	Settled Step = iota
	// Refuse: nothing, as it isn't ours.
	Refuse
	// Begin: make a new revision.
	Begin
	// Resume: go on with the newest revision.
	Resume
	// RollBack: make a revision of what was deployed before.
	RollBack
	// RolledBack: nothing, as that was done.
	RolledBack
)

// Decision is a step, and why the add-on is refused, if it is.
type Decision struct {
	Step    Step
	Refusal *failure.Error
}

func refuse(reason, format string, args ...any) Decision {
	refusal := failure.New(reason, format, args...)
	refusal.Wait = reason == ReasonReleaseLocked
	return Decision{Refuse, refusal}
}

// Next decides what to do about an add-on with these records, the newest first,
// when its inputs have this digest.
func Next(records []record.Summary, digest string, want *Desired, now time.Time) Decision {
	if len(records) == 0 {
		return Decision{Step: Begin}
	}
	newest := records[0]
	if d := Refusal(records, want, now); d.Step == Refuse {
		return d
	}
	renew := !want.Recorded && !newest.RenewAt.IsZero() && !now.Before(newest.RenewAt)
	isRollback := newest.Complete && newest.RolledBack != "" && newest.RolledBack == digest && !want.Again
	_, canRollBack := DeployedBefore(records, want)
	switch status := helmcommon.Status(newest.Status); {
	case isRollback && status == helmcommon.StatusDeployed && (!renew || now.Before(TriesAgain(newest))):
		return Decision{Step: RolledBack}
	case isRollback && status != helmcommon.StatusDeployed:
		return Decision{Step: Resume}
	case newest.Digest == digest && status == helmcommon.StatusFailed && canRollBack:
		return Decision{Step: RollBack}
	case !newest.Complete, newest.Digest != digest, newest.Transferred(), renew:
		return Decision{Step: Begin}
	case status == helmcommon.StatusDeployed:
		return Decision{Step: Settled}
	case status == helmcommon.StatusFailed, status == helmcommon.StatusPendingInstall, status == helmcommon.StatusPendingUpgrade:
		return Decision{Step: Resume}
	}
	return Decision{Step: Begin} // it was being removed, and is wanted again
}

// againAfter is how long a rollback stays whose certificates are to be renewed.
const againAfter = 24 * time.Hour

// TriesAgain returns when what was rolled back is tried again to renew its certificates; zero if it has none.
func TriesAgain(rollback record.Summary) time.Time {
	if again := rollback.ModifiedAt.Add(againAfter); !rollback.RenewAt.IsZero() && rollback.RenewAt.Before(again) {
		return again
	}
	return rollback.RenewAt
}

// Refusal tells why a release isn't the add-on's to change, if it isn't.
func Refusal(records []record.Summary, want *Desired, now time.Time) Decision {
	newest := records[0]
	switch {
	case newest.Owner != "" && want.Owner != "" && !newest.IsOwnedBy(want.Owner):
		return refuse(ReasonReleaseOwnedByOther,
			"ClusterAddon %s has release %s in this cluster already. Change the add-on's name or namespace in one of the two",
			newest.Owner, newest.Release)
	case takenOver(records, want):
		return refuse(ReasonReleaseTakenOver,
			"Another management cluster has a ClusterAddon %s, too, and has taken over release %s with revision %d. Remove the Cluster from one of them. To take the release back, delete this ClusterAddon: it is made again",
			want.Owner, newest.Release, newest.Revision)
	case !newest.Owned && newest.Status == string(helmcommon.StatusUninstalled):
		return Decision{} // what `helm uninstall --keep-history` left
	case !newest.Owned && want.Adoption != addonsv1.AdoptionPolicyAdopt && want.Adoption != addonsv1.AdoptionPolicyAdoptIfEqual:
		return refuse(ReasonReleaseExists,
			"Helm installed a release %s (revision %d, %s). Uninstall it, or set "+object.AdoptionPolicyField+" to Adopt or AdoptIfEqual",
			newest.Release, newest.Revision, newest.Status)
	case isLocked(newest, want, now):
		return refuse(ReasonReleaseLocked, "Helm is working on release %s: its revision %d is %s", newest.Release, newest.Revision, newest.Status)
	}
	return Decision{}
}

// isLocked reports whether Helm is working on a release, and not for too long.
func isLocked(newest record.Summary, want *Desired, now time.Time) bool {
	return !newest.Complete && newest.Pending() && now.Before(newest.ModifiedAt.Add(want.ProgressDeadline))
}

// takenOver says whether the ClusterAddon ran the release, and then another one of its name,
// which is in another management cluster, wrote the newest record. A ClusterAddon that hasn't run it is
// new, as after a move: it continues with what is there.
func takenOver(records []record.Summary, want *Desired) bool {
	newest := records[0]
	if newest.OwnerUID == "" || want.OwnerUID == "" || newest.OwnerUID == want.OwnerUID {
		return false
	}
	if want.Proof != "" && !newest.IsProvenBy(want.Proof) && record.ProofOwner(want.Proof) != newest.OwnerUID {
		return true
	}
	return slices.ContainsFunc(records, func(s record.Summary) bool { return s.OwnerUID == want.OwnerUID })
}

// DeployedBefore returns the revision that a failed upgrade is rolled back to; false if there is
// none, or the upgrade isn't to be rolled back. The failed one says which it was. A revision that has failed only to
// delete old objects works.
func DeployedBefore(records []record.Summary, want *Desired) (record.Summary, bool) {
	newest := records[0]
	if want.OnFailure != addonsv1.FailurePolicyRollBack || !newest.Complete || newest.RolledBack != "" || newest.FailureReason() == outcome.ReasonPruneFailed {
		return record.Summary{}, false
	}
	i := slices.IndexFunc(records, func(s record.Summary) bool { return s.Status == record.StatusDeployed })
	if i < 1 || newest.Previous == "" || records[i].Proof() != newest.Previous || records[i].Transferred() {
		return record.Summary{}, false
	}
	return records[i], true
}
