// SPDX-License-Identifier: Apache-2.0

package record

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/message"
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
)

// Annotations on records. Together they say what is installed, without the data. The annotations
// that hold a field of the [Summary] as it is are in [Summary.annotated].
const (
	annotationPrefix = "addons.cluster.x-k8s.io/"

	// DigestAnnotation is the digest of everything that went into the revision.
	DigestAnnotation = annotationPrefix + "digest"
	// OwnerAnnotation is the "namespace/name" of the ClusterAddon.
	OwnerAnnotation = annotationPrefix + "owner"
	// DeletionPolicyAnnotation is the deletion policy.
	DeletionPolicyAnnotation = annotationPrefix + "deletion-policy"

	stackAnnotation = annotationPrefix + "stack"
	// dependsOnAnnotation has the add-ons joined by commas.
	dependsOnAnnotation = annotationPrefix + "depends-on"
	objectsAnnotation   = annotationPrefix + "objects"
	// formatAnnotation is the version of the format of our part of the record.
	formatAnnotation = annotationPrefix + "record-format"
	// renewAtAnnotation has the time by RFC 3339.
	renewAtAnnotation = annotationPrefix + "renew-at"
)

// annotated returns the fields that annotations hold as they are, by the annotation's key.
func (s *Summary) annotated() map[string]*string {
	return map[string]*string{
		DigestAnnotation:                      &s.Digest,
		OwnerAnnotation:                       &s.Owner,
		DeletionPolicyAnnotation:              (*string)(&s.DeletionPolicy),
		stackAnnotation:                       &s.Stack,
		annotationPrefix + "stack-revision":   &s.StackRevision,
		annotationPrefix + "owner-uid":        (*string)(&s.OwnerUID),
		annotationPrefix + "artifact":         &s.Artifact,
		annotationPrefix + "artifact-version": &s.ArtifactVersion,
		annotationPrefix + "optional-values":  &s.Optional,
		annotationPrefix + "spec":             &s.Spec,
		annotationPrefix + "inputs":           &s.Inputs,
		annotationPrefix + "postconditions":   &s.Postconditions,
		annotationPrefix + "chart":            &s.Chart,
		annotationPrefix + "chart-version":    &s.Version,
		annotationPrefix + "app-version":      &s.AppVersion,
		annotationPrefix + "facts-used":       &s.FactsUsed,
		annotationPrefix + "otherwise":        &s.Otherwise,
		annotationPrefix + "service-account":  &s.ServiceAccount,
		annotationPrefix + "rolled-back":      &s.RolledBack,
		annotationPrefix + "failure":          &s.Failure,
		annotationPrefix + "data-policy":      (*string)(&s.DataPolicy),
		annotationPrefix + "kinds":            &s.Kinds,
		annotationPrefix + "applied-fields":   &s.Applied,
		annotationPrefix + "content":          &s.Content,
		annotationPrefix + "previous":         &s.Previous,
		annotationPrefix + "adopts":           &s.Adopts,
		annotationPrefix + "given-away":       &s.GivenAway,
	}
}

const currentFormat = 1

// ownLabels are ours on a record. Owner and deletion policy are annotations and,
// where they fit, labels too: Helm keeps only these when it makes a new revision.
var ownLabels = []string{
	addonsv1.AddonLabel, addonsv1.AddonNamespaceLabel, addonsv1.StackNameLabel,
	watchLabel, OwnerAnnotation, DeletionPolicyAnnotation,
}

// Limits of the metadata of a record, as it gets into the status of a ClusterAddon. The lengths are
// the same as in the CRD.
const (
	maxName         = 53
	maxNamespace    = 63
	maxRevision     = 1_000_000_000
	maxDependencies = 63
)

// noStack stands for the name of the AddonStack where Helm didn't keep it. It is no valid name.
const noStack = "-"

// SummaryOf reads the metadata of a record; false if it isn't one, or can't be one of a release. Writers
// of Secrets may say anything in it. Texts that are too long for a status lose their middle.
func SummaryOf(m *metav1.ObjectMeta) (Summary, bool) {
	labels, notes := m.Labels, m.Annotations
	revision, err := strconv.Atoi(labels[helmVersionLabel])
	name := labels[helmNameLabel]
	if err != nil || labels[helmOwnerLabel] != ownerHelm || m.Name != SecretName(name, revision) || name == "" || len(name) > maxName ||
		m.Namespace == "" || len(m.Namespace) > maxNamespace || revision < 1 || revision > maxRevision {
		return Summary{}, false
	}
	objects, _ := strconv.ParseInt(notes[objectsAnnotation], 10, 32)
	modified, _ := strconv.ParseInt(cmp.Or(labels[helmModifiedLabel], labels[helmCreatedLabel]), 10, 64)
	s := Summary{
		Release:         Release{Namespace: m.Namespace, Name: name},
		Revision:        revision,
		Status:          labels[helmStatusLabel],
		Owned:           labels[addonsv1.AddonLabel] == name && labels[addonsv1.AddonNamespaceLabel] == m.Namespace,
		Objects:         max(int32(objects), 0),
		SecretName:      m.Name,
		UID:             m.UID,
		ResourceVersion: m.ResourceVersion,
		ModifiedAt:      time.Unix(modified, 0),
	}
	for key, field := range s.annotated() {
		*field = notes[key]
	}
	s.Owner = cmp.Or(s.Owner, strings.Replace(labels[OwnerAnnotation], "_", "/", 1))
	s.Stack = cmp.Or(s.Stack, labels[addonsv1.StackNameLabel])
	s.DeletionPolicy = cmp.Or(s.DeletionPolicy, addonsv1.DeletionPolicy(labels[DeletionPolicyAnnotation]))
	if s.Owner != "" {
		s.Stack = cmp.Or(s.Stack, noStack)
	}
	message.ShortenAll(map[*string]int{&s.Stack: 253, &s.StackRevision: 253, &s.Version: 256, &s.Digest: 128, &s.ServiceAccount: 253, &s.Otherwise: 253})
	if list := notes[dependsOnAnnotation]; list != "" {
		s.DependsOn = strings.SplitN(list, ",", maxDependencies+1)
		s.DependsOn = s.DependsOn[:min(len(s.DependsOn), maxDependencies)]
	}
	s.RenewAt, _ = time.Parse(time.RFC3339, notes[renewAtAnnotation])
	s.Complete = s.Owned && notes[formatAnnotation] == strconv.Itoa(currentFormat) && s.Digest != ""
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
		watchLabel:               r.WatchFilter,
	} {
		if value != "" && len(validation.IsValidLabelValue(value)) == 0 {
			labels[label] = value
		}
	}
	annotations := map[string]string{
		formatAnnotation:  strconv.Itoa(currentFormat),
		objectsAnnotation: strconv.Itoa(int(r.Objects)),
	}
	for key, field := range r.annotated() {
		if *field != "" {
			annotations[key] = *field
		}
	}
	if len(r.DependsOn) > 0 {
		annotations[dependsOnAnnotation] = strings.Join(r.DependsOn, ",")
	}
	if !r.RenewAt.IsZero() {
		annotations[renewAtAnnotation] = r.RenewAt.UTC().Format(time.RFC3339)
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
	sum := sha256.Sum256([]byte(owner))
	return "sha256-" + hex.EncodeToString(sum[:20])
}

// IsOwnedBy says whether a ClusterAddon, "namespace/name", is the release's owner. For an owner
// with a long name, the labels that Helm keeps have only the hash.
func (s Summary) IsOwnedBy(owner string) bool {
	return s.Owner == owner || s.Owner == ownerLabel(owner)
}

// OwnerSelector selects the records that name a ClusterAddon, "namespace/name", as their owner.
func OwnerSelector(owner string) string { return OwnerAnnotation + "=" + ownerLabel(owner) }
