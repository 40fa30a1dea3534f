// SPDX-License-Identifier: Apache-2.0

package deliver

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
	helmReleaseName      = "meta.helm.sh/release-name"
	helmReleaseNamespace = "meta.helm.sh/release-namespace"
)

// KeptByAnnotation on an object says which release left it in the cluster, as
// "namespace/name": that one may have it again.
const KeptByAnnotation = "addons.cluster.x-k8s.io/kept-by"

// claim is how an object that is in the cluster already may be applied.
type claim int

const (
	// claimOwn: it is this add-on's.
	claimOwn claim = iota
	// claimAdopt: take it over and change it.
	claimAdopt
	// claimIfEqual: take it over if nothing would change.
	claimIfEqual
	// claimLeave: it does as it is; leave it.
	claimLeave
	// claimShare: it is a namespace of somebody else; set fields on it.
	claimShare
	// claimTakeOver: it is of an add-on that goes; take it over and change it.
	claimTakeOver
	// claimRefuse: it isn't this add-on's to touch.
	claimRefuse
)

// claimant is the add-on that wants an object.
type claimant struct {
	release Release
	key     record.ObjectKey
	manager string
	policy  addonsv1.AdoptionPolicy
	// crd says that the object is a CRD of crds/. As in Helm, one that is there
	// will do: many charts bring the same.
	crd bool
	// had says that the add-on had an object of this name: a backup may have brought it back.
	had bool
	// helm says that the object is in the manifest of a Helm release that is being
	// taken over.
	helm bool
	// leaving are releases whose objects may be taken over.
	leaving []Release
}

// decide tells how an object with this metadata may be applied, and why not.
func (c claimant) decide(m *metav1.ObjectMeta) (claim, string, string) {
	switch owner := c.ownerOf(m); {
	case owner == c.release && len(managersAmong(m, c.leaving)) > 0:
		return claimTakeOver, "", "" // it was about to go over to that one
	case owner == c.release:
		return claimOwn, "", ""
	case slices.Contains(c.leaving, owner):
		return claimTakeOver, "", ""
	case c.shares(m):
		return claimShare, "", ""
	case owner != Release{} && c.crd:
		return claimLeave, "", ""
	case owner != Release{}:
		return claimRefuse, ReasonOwnedByOther, fmt.Sprintf(
			"it belongs to add-on %s. Take it out of one of the two", owner)
	case m.Annotations[KeptByAnnotation] == c.release.String():
		return claimAdopt, "", ""
	case managedBy(m, c.manager) && !c.isNamespace(): // shared ones have our fields, too
		return claimOwn, "", ""
	}
	fromHelm := c.helm && helmOwner(m) == c.release
	switch {
	case c.policy == addonsv1.AdoptionPolicyAdopt:
		return claimAdopt, "", ""
	case c.policy == addonsv1.AdoptionPolicyAdoptIfEqual && fromHelm:
		// The release as a whole was taken over; its upgrade changes its objects.
		return claimAdopt, "", ""
	case c.crd:
		return claimLeave, "", ""
	case c.policy == addonsv1.AdoptionPolicyAdoptIfEqual:
		return claimIfEqual, "", ""
	}
	return claimRefuse, ReasonObjectExists, c.exists(m)
}

// ownerOf returns the add-on that an object belongs to, zero if none. Labels alone make the claimant no owner: copies
// have them, too.
func (c claimant) ownerOf(m *metav1.ObjectMeta) Release {
	owner := OwnerOf(m)
	if owner == c.release && !c.had && !managedBy(m, c.manager) && len(managersAmong(m, c.leaving)) == 0 {
		return Release{}
	}
	return owner
}

// adoptionPolicyField is what messages call it.
const adoptionPolicyField = "adoptionPolicy of the add-on, or of spec.source if the add-on is of a bundle,"

// exists tells whose an object is that is refused, and the way out.
func (c claimant) exists(m *metav1.ObjectMeta) string {
	by := ""
	if kept := m.Annotations[KeptByAnnotation]; kept != "" {
		by = ", left there by add-on " + kept
	} else if managers := managersOf(m); managers != "" {
		by = ", managed by " + managers
	}
	if h := helmOwner(m); h != (Release{}) {
		by += fmt.Sprintf(", of Helm release %s", h)
	}
	return fmt.Sprintf(
		"it exists already%s. Set %s to Adopt or AdoptIfEqual, or change one of the two names", by, adoptionPolicyField)
}

func (c claimant) isNamespace() bool { return c.key.Group == "" && c.key.Kind == namespaceKind.Kind }

// shares says whether an object is a namespace that isn't this add-on's, and doesn't become so.
func (c claimant) shares(m *metav1.ObjectMeta) bool {
	switch {
	case !c.isNamespace():
		return false
	case OwnerOf(m) != Release{}, c.key.Name == c.release.Namespace, isOfKubernetes(c.key.Name):
		return true
	case m.Annotations[KeptByAnnotation] == c.release.String():
		return false
	}
	return c.policy != addonsv1.AdoptionPolicyAdopt && c.policy != addonsv1.AdoptionPolicyAdoptIfEqual
}

// isOfKubernetes says whether a namespace is one of those that each cluster has.
func isOfKubernetes(namespace string) bool {
	return strings.HasPrefix(namespace, "kube-") || namespace == metav1.NamespaceDefault
}

// OwnerOf returns the add-on that an object's labels name, zero if none.
func OwnerOf(m *metav1.ObjectMeta) Release {
	r := Release{Namespace: m.Labels[addonsv1.AddonNamespaceLabel], Name: m.Labels[addonsv1.AddonLabel]}
	if r.Name == "" || r.Namespace == "" {
		return Release{}
	}
	return r
}

// helmOwner returns the release that Helm's annotations on an object name.
func helmOwner(m *metav1.ObjectMeta) Release {
	return Release{Namespace: m.Annotations[helmReleaseNamespace], Name: m.Annotations[helmReleaseName]}
}

// owns says whether an object of the inventory is the release's to delete. One that was made
// again since, or whose entry isn't proven, has to be ours by its field manager, too: copies keep labels.
func (r *run) owns(m *metav1.ObjectMeta, e record.Entry) bool {
	switch OwnerOf(m) {
	case r.release:
		return !e.Unproven && (e.UID == "" || e.UID == m.UID) || managedBy(m, r.manager)
	case Release{}:
		owner := helmOwner(m)
		return e.Helm && (owner == r.release || r.adopted != nil && owner == Release{Namespace: r.release.Namespace, Name: r.adopted.Name})
	}
	return false
}

func managedBy(m *metav1.ObjectMeta, manager string) bool {
	return slices.ContainsFunc(m.ManagedFields, func(e metav1.ManagedFieldsEntry) bool { return e.Manager == manager })
}

// managersAmong returns the field managers of those releases that set a field.
func managersAmong(m *metav1.ObjectMeta, releases []Release) []string {
	var managers []string
	for _, r := range releases {
		if manager := FieldManager(r); managedBy(m, manager) {
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
	return message.List(sets.List(names), ", ", maxNamed)
}
