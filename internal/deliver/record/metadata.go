// SPDX-License-Identifier: Apache-2.0

package record

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// Labels that Helm's storage puts on its Secrets.
const (
	helmNameLabel     = "name"
	helmOwnerLabel    = "owner"
	helmStatusLabel   = "status"
	helmVersionLabel  = "version"
	helmCreatedLabel  = "createdAt"
	helmModifiedLabel = "modifiedAt"

	ownerHelm = "helm"
	// ownerParts in the owner label marks continuation Secrets: Helm doesn't list them.
	ownerParts = "chandler"
)

// Annotations on records. Together they say what is installed, without the data.
const (
	annotationPrefix = "addons.cluster.x-k8s.io/"

	// DigestAnnotation is the digest of everything that went into the revision.
	DigestAnnotation = annotationPrefix + "digest"
	// OwnerAnnotation is the "namespace/name" of the ClusterAddon.
	OwnerAnnotation = annotationPrefix + "owner"
	// OwnerUIDAnnotation is the UID of the ClusterAddon that made the revision.
	OwnerUIDAnnotation = annotationPrefix + "owner-uid"
	// SpecAnnotation is a digest of what the user wrote of the add-on.
	SpecAnnotation = annotationPrefix + "spec"
	// PostconditionsAnnotation is a digest of the postconditions that held.
	PostconditionsAnnotation = annotationPrefix + "postconditions"
	// DependsOnAnnotation are the add-ons that this one depends on, joined by commas.
	DependsOnAnnotation = annotationPrefix + "depends-on"
	// StackAnnotation is the name of the AddonStack.
	StackAnnotation = annotationPrefix + "stack"
	// ChartAnnotation, ChartVersionAnnotation and AppVersionAnnotation are the chart's.
	ChartAnnotation        = annotationPrefix + "chart"
	ChartVersionAnnotation = annotationPrefix + "chart-version"
	AppVersionAnnotation   = annotationPrefix + "app-version"
	// FactsUsedAnnotation are the facts of the cluster that rendering used, in JSON.
	FactsUsedAnnotation = annotationPrefix + "facts-used"
	// DeletionPolicyAnnotation is the deletion policy.
	DeletionPolicyAnnotation = annotationPrefix + "deletion-policy"
	// RolledBackAnnotation is the digest of inputs whose upgrade failed before a rollback.
	RolledBackAnnotation = annotationPrefix + "rolled-back"
	// FailureAnnotation says why a revision failed.
	FailureAnnotation = annotationPrefix + "failure"
	// DataPolicyAnnotation is the data policy.
	DataPolicyAnnotation = annotationPrefix + "data-policy"
	// ServiceAccountAnnotation is the name of the ServiceAccount that delivers the objects.
	ServiceAccountAnnotation = annotationPrefix + "service-account"
	// ObjectsAnnotation is the number of the revision's objects, CRDs included.
	ObjectsAnnotation = annotationPrefix + "objects"
	// KindsAnnotation are the kinds of the inventory: see Kinds.
	KindsAnnotation = annotationPrefix + "kinds"
	// AppliedAnnotation are sums of the fields that were applied: see [Summary].
	AppliedAnnotation = annotationPrefix + "applied-fields"
	// FormatAnnotation is the version of the format of our part of the record.
	FormatAnnotation = annotationPrefix + "record-format"
	// ArtifactAnnotation is the digest of the chart, and ArtifactVersionAnnotation the
	// version of the object it was in, if it was in one.
	ArtifactAnnotation        = annotationPrefix + "artifact"
	ArtifactVersionAnnotation = annotationPrefix + "artifact-version"
	// RenewAtAnnotation is when a generated certificate is to be renewed (RFC 3339).
	RenewAtAnnotation = annotationPrefix + "renew-at"
)

const currentFormat = 1

// ownLabels are ours on a record. Owner and deletion policy are annotations and,
// where they fit, labels too: Helm keeps only these when it makes a new revision.
var ownLabels = []string{
	addonsv1.AddonLabel, addonsv1.AddonNamespaceLabel, addonsv1.StackNameLabel,
	watchLabel, OwnerAnnotation, DeletionPolicyAnnotation,
}

// SummaryOf reads the metadata of a record; false if it isn't one.
func SummaryOf(m *metav1.ObjectMeta) (Summary, bool) {
	labels, notes := m.Labels, m.Annotations
	revision, err := strconv.Atoi(labels[helmVersionLabel])
	name := labels[helmNameLabel]
	if err != nil || labels[helmOwnerLabel] != ownerHelm || m.Name != SecretName(name, revision) {
		return Summary{}, false
	}
	objects, _ := strconv.ParseInt(notes[ObjectsAnnotation], 10, 32)
	modified, _ := strconv.ParseInt(cmp.Or(labels[helmModifiedLabel], labels[helmCreatedLabel]), 10, 64)
	s := Summary{
		Release:         Release{Namespace: m.Namespace, Name: name},
		Revision:        revision,
		Status:          labels[helmStatusLabel],
		Owned:           labels[addonsv1.AddonLabel] == name && labels[addonsv1.AddonNamespaceLabel] == m.Namespace,
		Digest:          notes[DigestAnnotation],
		Artifact:        notes[ArtifactAnnotation],
		ArtifactVersion: notes[ArtifactVersionAnnotation],
		OwnerUID:        types.UID(notes[OwnerUIDAnnotation]),
		Owner:           cmp.Or(notes[OwnerAnnotation], strings.Replace(labels[OwnerAnnotation], "_", "/", 1)),
		Stack:           cmp.Or(notes[StackAnnotation], labels[addonsv1.StackNameLabel]),
		Spec:            notes[SpecAnnotation],
		Postconditions:  notes[PostconditionsAnnotation],
		Chart:           notes[ChartAnnotation],
		Version:         notes[ChartVersionAnnotation],
		AppVersion:      notes[AppVersionAnnotation],
		FactsUsed:       notes[FactsUsedAnnotation],
		DeletionPolicy:  addonsv1.DeletionPolicy(cmp.Or(notes[DeletionPolicyAnnotation], labels[DeletionPolicyAnnotation])),
		DataPolicy:      addonsv1.DataPolicy(notes[DataPolicyAnnotation]),
		ServiceAccount:  notes[ServiceAccountAnnotation],
		RolledBack:      notes[RolledBackAnnotation],
		Failure:         notes[FailureAnnotation],
		Objects:         int32(objects),
		Kinds:           notes[KindsAnnotation],
		Applied:         notes[AppliedAnnotation],
		SecretName:      m.Name,
		UID:             m.UID,
		ResourceVersion: m.ResourceVersion,
		CreatedAt:       m.CreationTimestamp.Time,
		ModifiedAt:      time.Unix(modified, 0),
	}
	if list := notes[DependsOnAnnotation]; list != "" {
		s.DependsOn = strings.Split(list, ",")
	}
	s.RenewAt, _ = time.Parse(time.RFC3339, notes[RenewAtAnnotation])
	s.Complete = s.Owned && notes[FormatAnnotation] == strconv.Itoa(currentFormat) && s.Digest != ""
	return s, true
}

// metadata is the opposite of SummaryOf.
func (r *Record) metadata(modified time.Time) metav1.ObjectMeta {
	labels := map[string]string{
		helmNameLabel:                r.Name,
		helmOwnerLabel:               ownerHelm,
		helmStatusLabel:              r.Status,
		helmVersionLabel:             strconv.Itoa(r.Revision),
		helmModifiedLabel:            strconv.FormatInt(modified.Unix(), 10),
		addonsv1.AddonLabel:          r.Name,
		addonsv1.AddonNamespaceLabel: r.Namespace,
	}
	for label, value := range map[string]string{
		addonsv1.StackNameLabel:  r.Stack,
		OwnerAnnotation:          ownerLabel(r.Owner),
		DeletionPolicyAnnotation: string(r.DeletionPolicy),
	} {
		if value = asLabel(value); value != "" {
			labels[label] = value
		}
	}
	if r.WatchFilter != "" {
		labels[watchLabel] = r.WatchFilter
	}
	annotations := map[string]string{
		FormatAnnotation:          strconv.Itoa(currentFormat),
		DigestAnnotation:          r.Digest,
		StackAnnotation:           r.Stack,
		OwnerAnnotation:           r.Owner,
		OwnerUIDAnnotation:        string(r.OwnerUID),
		ArtifactAnnotation:        r.Artifact,
		ArtifactVersionAnnotation: r.ArtifactVersion,
		SpecAnnotation:            r.Spec,
		PostconditionsAnnotation:  r.Postconditions,
		DependsOnAnnotation:       strings.Join(r.DependsOn, ","),
		ChartAnnotation:           r.Chart,
		ChartVersionAnnotation:    r.Version,
		AppVersionAnnotation:      r.AppVersion,
		FactsUsedAnnotation:       r.FactsUsed,
		DeletionPolicyAnnotation:  string(r.DeletionPolicy),
		ServiceAccountAnnotation:  r.ServiceAccount,
		RolledBackAnnotation:      r.RolledBack,
		FailureAnnotation:         r.Failure,
		DataPolicyAnnotation:      string(r.DataPolicy),
		ObjectsAnnotation:         strconv.Itoa(int(r.Objects)),
		KindsAnnotation:           r.Kinds,
		AppliedAnnotation:         r.Applied,
	}
	if !r.RenewAt.IsZero() {
		annotations[RenewAtAnnotation] = r.RenewAt.UTC().Format(time.RFC3339)
	}
	for k, v := range annotations {
		if v == "" {
			delete(annotations, k)
		}
	}
	return metav1.ObjectMeta{
		Name:            SecretName(r.Name, r.Revision),
		Namespace:       r.Namespace,
		UID:             r.UID,
		ResourceVersion: r.ResourceVersion,
		Labels:          labels,
		Annotations:     annotations,
	}
}

// ownerLabel is the owner as a label's value, or its hash if it is too long for one.
func ownerLabel(owner string) string {
	value := strings.Replace(owner, "/", "_", 1)
	if len(value) <= content.LabelValueMaxLength {
		return value
	}
	return "sha256-" + sha([]byte(owner))[:40]
}

// IsOwnedBy says whether a ClusterAddon, "namespace/name", is the release's owner. Of an
// owner with a long name, the labels that Helm keeps have the hash alone.
func (s Summary) IsOwnedBy(owner string) bool {
	return s.Owner == owner || s.Owner == ownerLabel(owner)
}

// asLabel is the value as a label's, "" if it can't be one.
func asLabel(value string) string {
	if len(validation.IsValidLabelValue(value)) > 0 {
		return ""
	}
	return value
}
