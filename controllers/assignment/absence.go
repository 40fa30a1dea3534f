// SPDX-License-Identifier: Apache-2.0

package assignment

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/management"
	"github.com/cluster-chandler/chandler/internal/member"
)

const (
	// deletionGrace is how long an AddonStack has to be gone before its add-ons go. A
	// stack that is replaced (kubectl replace --force, a GitOps tool) is back by then. A
	// namespace that is deleted with it says so by then, and CRDs that go no longer offer it.
	deletionGrace = 4 * time.Second
	// absenceRetry is how often is checked meanwhile.
	absenceRetry = time.Second
)

// absence says what the absence of an AddonStack means.
type absence int

const (
	// absenceOpen: it may be back in a moment.
	absenceOpen absence = iota
	// absenceDeleted: it was deleted, and nothing else was.
	absenceDeleted
	// absenceAmidst: it went with its CRD or its namespace. That is no wish to uninstall.
	absenceAmidst
)

// absences remembers since when AddonStacks are gone. Losing it makes a removal begin later.
type absences struct {
	mu      sync.Mutex
	since   map[client.ObjectKey]time.Time
	amidst  map[client.ObjectKey]bool
	checked map[string]namespaceState // by namespace
}

// namespaceState is what was seen of a namespace, for the many clusters of a stack that ask.
type namespaceState struct {
	at    time.Time
	whole bool
}

// judge returns what the absence of a stack means that the API server doesn't have.
func (r *Reconciler) judge(ctx context.Context, key client.ObjectKey) (absence, error) {
	a, now := &r.absences, r.Clock.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.since == nil {
		a.since, a.amidst, a.checked = map[client.ObjectKey]time.Time{}, map[client.ObjectKey]bool{}, map[string]namespaceState{}
	}
	if l, ok := a.checked[key.Namespace]; !ok || now.Sub(l.at) >= absenceRetry/2 {
		whole, err := r.isWhole(ctx, key.Namespace)
		if err != nil {
			return absenceOpen, err
		}
		a.checked[key.Namespace] = namespaceState{at: now, whole: whole}
	}
	since, known := a.since[key]
	if !known {
		a.since[key], since = now, now
	}
	a.amidst[key] = a.amidst[key] || !a.checked[key.Namespace].whole
	switch {
	case now.Sub(since) < deletionGrace:
		return absenceOpen, nil
	case a.amidst[key]:
		return absenceAmidst, nil
	}
	return absenceDeleted, nil
}

// present forgets the absence of stacks that are there.
func (a *absences) present(namespace string, candidates []candidate) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.since) == 0 {
		clear(a.checked)
	}
	for _, c := range candidates {
		delete(a.since, stackKey(namespace, c.name))
		delete(a.amidst, stackKey(namespace, c.name))
	}
}

// isAmidst reports whether a stack went with its CRD or its namespace.
func (a *absences) isAmidst(key client.ObjectKey) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.amidst[key]
}

// isWhole reports whether neither our CRDs nor the namespace are being deleted, or gone.
func (r *Reconciler) isWhole(ctx context.Context, namespace string) (bool, error) {
	offered, err := r.Discovery.ServerResourcesForGroupVersion(addonsv1.GroupVersion.String())
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("asking which kinds of %s there are: %w", addonsv1.GroupVersion, err)
	case !creatable(offered, "addonstacks"), !creatable(offered, "clusteraddons"):
		return false, nil
	}
	ns := &metav1.PartialObjectMetadata{}
	ns.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	if err := r.APIReader.Get(ctx, client.ObjectKey{Name: namespace}, ns); err != nil {
		return false, fmt.Errorf("looking whether namespace %s is being deleted: %w", namespace, err)
	}
	return ns.DeletionTimestamp.IsZero(), nil
}

// creatable reports whether objects of a resource can be made: not while its CRD is being deleted.
func creatable(offered *metav1.APIResourceList, resource string) bool {
	return slices.ContainsFunc(offered.APIResources, func(r metav1.APIResource) bool {
		return r.Name == resource && slices.Contains(r.Verbs, "create")
	})
}

// Discovery tells which kinds the management cluster offers.
type Discovery = discovery.ServerResourcesInterface

// withoutCluster deletes the ClusterAddon of a cluster that is gone and was no object: no owner
// takes it along. Nothing is uninstalled. While the source hasn't checked yet, nothing is known.
func (r *Reconciler) withoutCluster(ctx context.Context, ca *addonsv1.ClusterAddon) (ctrl.Result, error) {
	if ca == nil || ca.Spec.ClusterRef == nil || member.IsObject(ca.Spec.ClusterRef.Kind) || !ca.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	switch r.Members.Absence(ca.Spec.ClusterRef.Kind) {
	case member.Foreign:
		return ctrl.Result{}, nil
	case member.Unsettled:
		return ctrl.Result{RequeueAfter: member.SettleRetry}, nil
	case member.Gone:
	}
	options := client.Preconditions{UID: &ca.UID, ResourceVersion: &ca.ResourceVersion}
	err := r.Client.Delete(ctx, ca, options)
	return management.Retry(ctx, ctrl.Result{}, wrap(err, "deleting the ClusterAddon of %s %s", ca.Spec.ClusterRef.Kind, ca.Spec.ClusterRef.Name))
}

// nameTaken tells that a cluster gets no add-ons, as the name of its ClusterAddon is that of another's.
func (r *Reconciler) nameTaken(ca *addonsv1.ClusterAddon, cluster *member.Member) {
	r.Recorder.Eventf(ca, cluster.Object(), corev1.EventTypeWarning, "NameTaken", "Assign",
		"%s would have a ClusterAddon of this name, too, and so gets none: rename one of them", cluster)
}
