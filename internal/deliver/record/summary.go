// SPDX-License-Identifier: Apache-2.0

package record

import (
	"cmp"
	"slices"
	"strings"
	"time"

	helmcommon "helm.sh/helm/v4/pkg/release/common"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// Values of Summary.Status.
const (
	// StatusDeployed: the add-on is installed, and was ready.
	StatusDeployed = string(helmcommon.StatusDeployed)
	// StatusUninstalling: its removal has begun.
	StatusUninstalling = string(helmcommon.StatusUninstalling)
)

// Summary is what the metadata of a release's newest record says.
type Summary struct {
	Release
	Terms
	// Revision of the Helm release.
	Revision int
	// Status is Helm's: deployed, failed, pending-install and so on.
	Status string
	// Owned says that the record carries the labels of this add-on. Else it is of a
	// release that Helm made.
	Owned bool
	// Complete says that Chandler wrote the record last, so that the fields below hold.
	Complete bool

	// Digest of everything that went into the revision.
	Digest string
	// Owner is the ClusterAddon, as "namespace/name", or a hash of that: see IsOwnedBy.
	Owner string
	// OwnerUID is that of the ClusterAddon that made the revision.
	OwnerUID types.UID
	// RolledBack is the digest of the inputs whose upgrade failed, if the revision is a
	// rollback; else "". Failure says why the upgrade, or this revision, failed: the reason,
	// a colon and the message.
	RolledBack, Failure string
	// Chart, Version and AppVersion are the chart's.
	Chart, Version, AppVersion string
	// FactsUsed are the facts of the cluster that rendering used, in JSON.
	FactsUsed string
	// Otherwise names objects that the chart makes otherwise by these facts, and that wait for another revision; "" for none.
	Otherwise string
	// Artifact is the chart's digest.
	Artifact string
	// StackRevision is the stack's revision that the add-on was brought to by this one. Nothing proves it.
	StackRevision string
	// Content is the digest of the record's data, and Previous the proof of the revision that was
	// deployed before, "" if there is none or it wasn't proven: see [Summary.Proof].
	Content, Previous string
	// Adopts is the release that the add-on takes over, as "namespace/name"; "" for none.
	Adopts string
	// GivenAway is "true" if something of the release belongs to another one now.
	GivenAway string
	// RenewAt is when a generated certificate is to be renewed; zero if there is none.
	RenewAt time.Time
	// Installed says that this revision, or one before it, was deployed, and the release
	// not removed since. Summarize fills it in.
	Installed bool
	// Objects is the number of the revision's objects.
	Objects int32
	// Kinds of the inventory, as Kinds makes it.
	Kinds string
	// Applied are the sums of the fields that the objects had once they were applied, as
	// [drift.Sums.String] writes them; "" if they aren't known.
	Applied string

	// The Secret.
	SecretName      string
	UID             types.UID
	ResourceVersion string
	// ModifiedAt is when Helm or Chandler last wrote the record, to the second.
	ModifiedAt time.Time
}

// Terms are what a record says of an add-on beside what was installed. They say which
// stack it is of, how it is to be removed one day, and what it takes to see that
// nothing else is wanted. They may change while the revision stays.
type Terms struct {
	// Stack is the AddonStack's name.
	Stack          string
	DeletionPolicy addonsv1.DeletionPolicy
	// DataPolicy says whether objects that hold data go; "" keeps them.
	DataPolicy addonsv1.DataPolicy
	// DependsOn are the add-ons of the stack that this one depends on.
	DependsOn []string
	// Spec is a digest of what the user wrote.
	Spec string
	// ArtifactVersion identifies the version of the object that held the artifact, "" if none did: while that is the
	// same, so is the artifact's digest.
	ArtifactVersion string
	// Postconditions is a digest of those that held once the add-on was installed, "" for none.
	Postconditions string
	// ServiceAccount is the name of the one whose rights the objects are delivered with, "" if
	// they are the kubeconfig's.
	ServiceAccount string
	// Optional are the optional sources of values that were there, as "kind/name/key" joined by commas.
	Optional string `json:",omitempty"`
	// Inputs identify the values that the revision of the stack pins, joined by commas: those of any one make this revision.
	Inputs string `json:",omitempty"`
}

// Settled says that the add-on is deployed with this digest: nothing is to be done.
func (s Summary) Settled(digest string) bool {
	return s.Repairable() && s.Digest == digest
}

// Repairable says that the record tells what the add-on has applied.
func (s Summary) Repairable() bool {
	return s.Complete && s.Status == helmcommon.StatusDeployed.String() && !s.Transferred()
}

// Pending says that an operation is under way: an installation, an upgrade or a removal.
func (s Summary) Pending() bool {
	return helmcommon.Status(s.Status).IsPending() || s.Status == helmcommon.StatusUninstalling.String()
}

// Installed says whether one of a release's revisions, the newest first, was deployed,
// and the release not removed since.
func Installed(records []Summary) bool {
	for _, r := range records {
		switch helmcommon.Status(r.Status) {
		case helmcommon.StatusUninstalled, helmcommon.StatusUninstalling:
			return false
		case helmcommon.StatusDeployed, helmcommon.StatusSuperseded:
			return true
		}
	}
	return false
}

// Summarize returns the newest revision of each release. An add-on that is settled by it costs no request. A Secret
// that isn't a record of a release is ignored.
func Summarize(secrets []metav1.PartialObjectMetadata) map[Release]Summary {
	var records []Summary
	for i := range secrets {
		if s, ok := SummaryOf(&secrets[i].ObjectMeta); ok {
			records = append(records, s)
		}
	}
	return Newest(records)
}

// Newest returns the newest revision of each release. An add-on that is settled by it costs no request.
func Newest(records []Summary) map[Release]Summary {
	all := make(map[Release][]Summary)
	for _, s := range records {
		all[s.Release] = append(all[s.Release], s)
	}
	newest := make(map[Release]Summary, len(all))
	for release, records := range all {
		newestFirst(records)
		records[0].Installed = Installed(records)
		newest[release] = records[0]
	}
	return newest
}

// newestFirst sorts by revision, the newest first.
func newestFirst(s []Summary) {
	slices.SortFunc(s, func(a, b Summary) int { return cmp.Compare(b.Revision, a.Revision) })
}

// MarkTransferred notes that something of the release belongs to another one now. So the record
// doesn't say any more what is installed.
func (r *Record) MarkTransferred() {
	r.GivenAway = "true"
	for i := range r.State.Inventory {
		r.State.Inventory[i].UID = ""
	}
}

// Transferred says that the record doesn't say any more what is installed: see
// [Record.MarkTransferred].
func (s Summary) Transferred() bool { return s.GivenAway != "" }

// HasInputs reports whether the revision is made with pinned values. None fit each revision.
func (s Summary) HasInputs(pinned string) bool {
	return pinned == "" || slices.Contains(strings.Split(s.Inputs, ","), pinned)
}

// FailureReason returns the reason that Failure begins with, "" for none.
func (s Summary) FailureReason() string {
	reason, _, _ := strings.Cut(s.Failure, ":")
	return reason
}

// IsRollback reports whether the revision has what an earlier one had.
func (s Summary) IsRollback() bool { return s.RolledBack != "" }
