// SPDX-License-Identifier: Apache-2.0

package object

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/internal/message"
)

// Annotations that Helm puts on the objects of a release
// (helm.sh/helm/v4/pkg/action/validate.go).
const (
	HelmReleaseName      = "meta.helm.sh/release-name"
	HelmReleaseNamespace = "meta.helm.sh/release-namespace"
)

// KeptByAnnotation on an object says which release left it in the cluster, as
// "namespace/name": that one may have it again.
const KeptByAnnotation = "addons.cluster.x-k8s.io/kept-by"

// Claim is how an object that is in the cluster already may be applied.
type Claim int

const (
	// ClaimOwn: it is this add-on's.
	ClaimOwn Claim = iota
	// ClaimAdopt: take it over and change it.
	ClaimAdopt
	// ClaimIfEqual: take it over if nothing would change.
	ClaimIfEqual
	// ClaimLeave: it does as it is; leave it.
	ClaimLeave
	// ClaimShare: it is a namespace of somebody else; set fields on it.
	ClaimShare
	// ClaimTakeOver: it is of an add-on that leaves; take it over and change it.
	ClaimTakeOver
	// ClaimRefuse: it isn't this add-on's to touch.
	ClaimRefuse
)

// Claimant is the add-on that wants an object.
type Claimant struct {
	Release record.Release
	Key     record.ObjectKey
	Policy  addonsv1.AdoptionPolicy
	// CRD says that the object is a CRD of crds/. As in Helm, one that is there
	// will do: many charts bring the same.
	CRD bool
	// Had says that the add-on had an object of this name: a backup may have brought it back.
	Had bool
	// Helm says that the object is in the manifest of a Helm release that is being
	// taken over.
	Helm bool
	// Leaving are releases whose objects may be taken over.
	Leaving []record.Release
}

// Decide tells how an object with this metadata may be applied, and why not.
func (c Claimant) Decide(m *metav1.ObjectMeta) (Claim, string, string) {
	switch owner := c.ownerOf(m); {
	case owner == c.Release && len(ManagersAmong(m, c.Leaving)) > 0:
		return ClaimTakeOver, "", "" // it was about to go over to that one
	case owner == c.Release:
		return ClaimOwn, "", ""
	case slices.Contains(c.Leaving, owner):
		return ClaimTakeOver, "", ""
	case c.shares(m):
		return ClaimShare, "", ""
	case owner != record.Release{} && c.CRD:
		return ClaimLeave, "", ""
	case owner != record.Release{}:
		return ClaimRefuse, ReasonOwnedByOther, fmt.Sprintf(
			"it belongs to add-on %s. Take it out of one of the two", owner)
	case m.Annotations[KeptByAnnotation] == c.Release.String():
		return ClaimAdopt, "", ""
	case ManagedBy(m, FieldManager(c.Release)) && !c.isNamespace(): // shared ones have our fields, too
		return ClaimOwn, "", ""
	}
	fromHelm := c.Helm && HelmOwner(m) == c.Release
	switch {
	case c.Policy == addonsv1.AdoptionPolicyAdopt:
		return ClaimAdopt, "", ""
	case c.Policy == addonsv1.AdoptionPolicyAdoptIfEqual && fromHelm:
		// The release as a whole was taken over; its upgrade changes its objects.
		return ClaimAdopt, "", ""
	case c.CRD:
		return ClaimLeave, "", ""
	case c.Policy == addonsv1.AdoptionPolicyAdoptIfEqual:
		return ClaimIfEqual, "", ""
	}
	return ClaimRefuse, ReasonObjectExists, c.Exists(m)
}

// ownerOf returns the add-on that an object belongs to, zero if none. Labels alone make the Claimant no owner: copies
// have them, too.
func (c Claimant) ownerOf(m *metav1.ObjectMeta) record.Release {
	owner := OwnerOf(m)
	if owner == c.Release && !c.Had && !ManagedBy(m, FieldManager(c.Release)) && len(ManagersAmong(m, c.Leaving)) == 0 {
		return record.Release{}
	}
	return owner
}

// AdoptionPolicyField is what messages call it.
const AdoptionPolicyField = "adoptionPolicy of the add-on, or of spec.source if the add-on is of a bundle,"

// Exists tells whose an object is that is refused, and the way out.
func (c Claimant) Exists(m *metav1.ObjectMeta) string {
	by := ""
	if kept := m.Annotations[KeptByAnnotation]; kept != "" {
		by = ", left there by add-on " + kept
	} else if managers := managersOf(m); managers != "" {
		by = ", managed by " + managers
	}
	if h := HelmOwner(m); h != (record.Release{}) {
		by += fmt.Sprintf(", of Helm release %s", h)
	}
	return fmt.Sprintf(
		"it exists already%s. Set %s to Adopt or AdoptIfEqual, or change one of the two names", by, AdoptionPolicyField)
}

func (c Claimant) isNamespace() bool { return c.Key.Group == "" && c.Key.Kind == NamespaceKind.Kind }

// shares says whether an object is a namespace that isn't this add-on's, and doesn't become so.
func (c Claimant) shares(m *metav1.ObjectMeta) bool {
	switch {
	case !c.isNamespace():
		return false
	case OwnerOf(m) != record.Release{}, c.Key.Name == c.Release.Namespace, IsOfKubernetes(c.Key.Name):
		return true
	case m.Annotations[KeptByAnnotation] == c.Release.String():
		return false
	}
	return c.Policy != addonsv1.AdoptionPolicyAdopt && c.Policy != addonsv1.AdoptionPolicyAdoptIfEqual
}

// IsOfKubernetes says whether a namespace is one of those that each cluster has.
func IsOfKubernetes(namespace string) bool {
	return strings.HasPrefix(namespace, "kube-") || namespace == metav1.NamespaceDefault
}

// OwnerOf returns the add-on that an object's labels name, zero if none.
func OwnerOf(m *metav1.ObjectMeta) record.Release {
	r := record.Release{Namespace: m.Labels[addonsv1.AddonNamespaceLabel], Name: m.Labels[addonsv1.AddonLabel]}
	if r.Name == "" || r.Namespace == "" {
		return record.Release{}
	}
	return r
}

// HelmOwner returns the release that Helm's annotations on an object name.
func HelmOwner(m *metav1.ObjectMeta) record.Release {
	return record.Release{Namespace: m.Annotations[HelmReleaseNamespace], Name: m.Annotations[HelmReleaseName]}
}

// IsOwned reports whether an object of a release's inventory is the release's to delete. If that was made again since,
// or its entry isn't proven, it has to be the release's by its field manager, too: copies keep labels. If its UID was
// never noted, it may have begun to go over to another add-on. Adopted is the release of Helm that was taken over, nil for
// none.
func IsOwned(m *metav1.ObjectMeta, e record.Entry, release record.Release, adopted *record.AdoptedRelease) bool {
	switch OwnerOf(m) {
	case release:
		isNoted := e.UID != "" && e.UID == m.UID || e.UID == "" && slices.ContainsFunc(m.ManagedFields, isOfAddon)
		return !e.Unproven && isNoted || ManagedBy(m, FieldManager(release))
	case record.Release{}:
		owner := HelmOwner(m)
		return e.Helm && (owner == release || adopted != nil && owner == record.Release{Namespace: release.Namespace, Name: adopted.Name})
	}
	return false
}

// ManagedBy reports whether a field manager set a field of an object.
func ManagedBy(m *metav1.ObjectMeta, manager string) bool {
	return slices.ContainsFunc(m.ManagedFields, func(e metav1.ManagedFieldsEntry) bool { return e.Manager == manager })
}

// isOfAddon reports whether an add-on set the fields.
func isOfAddon(e metav1.ManagedFieldsEntry) bool { return strings.HasPrefix(e.Manager, managerPrefix) }

// ManagersAmong returns the field managers of those releases that set a field.
func ManagersAmong(m *metav1.ObjectMeta, releases []record.Release) []string {
	var managers []string
	for _, r := range releases {
		if manager := FieldManager(r); ManagedBy(m, manager) {
			managers = append(managers, manager)
		}
	}
	return managers
}

// managersOf lists who set fields of an object, but for its status.
func managersOf(m *metav1.ObjectMeta) string {
	names := sets.New[string]()
	for _, e := range m.ManagedFields {
		if e.Subresource == "" {
			names.Insert(e.Manager)
		}
	}
	return message.List(sets.List(names), ", ", message.Few)
}
