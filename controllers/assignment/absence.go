// SPDX-License-Identifier: Apache-2.0

package assignment

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/management"
	"github.com/cluster-chandler/chandler/internal/member"
	"github.com/cluster-chandler/chandler/internal/retry"
)

const (
	// deletionGrace is how long an AddonStack has to be gone before its add-ons go. A
	// stack that is replaced (kubectl replace --force, a GitOps tool) is back by then. A
	// namespace that is deleted with it says so by then, and CRDs that go no longer offer it.
	// An AddonStack that loses add-ons or clusters has to be so for that time, too: kubectl
	// apply gives them to another one with its next request.
	deletionGrace = 4 * time.Second
)

// mayReturn reports whether a stack that the API server doesn't have may be back in a moment. The stack was
// assigned to the ClusterAddon, and may have gone while this process didn't run.
func (r *Reconciler) mayReturn(ctx context.Context, key client.ObjectKey, ca *addonsv1.ClusterAddon) (bool, error) {
	now, err := r.wholeness(ctx, key.Namespace)
	if err != nil {
		return true, err
	}
	return r.Clock.Since(r.absences.absent(key, ca.CreationTimestamp.Time, now)) < deletionGrace, nil
}

// wholeness returns the wholeness of our CRDs and a namespace, at most half a second old.
func (r *Reconciler) wholeness(ctx context.Context, namespace string) (wholeness, error) {
	if known, ok := r.absences.whole.Get(namespace); ok {
		return known.(wholeness), nil
	}
	now, err := r.isWhole(ctx, namespace)
	if err == nil {
		r.absences.whole.Set(namespace, now, retry.Moment/2)
	}
	return now, err
}

// isWhole returns the wholeness of our CRDs and a namespace.
func (r *Reconciler) isWhole(ctx context.Context, namespace string) (wholeness, error) {
	offered, err := r.Discovery.ServerResourcesForGroupVersion(addonsv1.GroupVersion.String())
	switch {
	case apierrors.IsNotFound(err):
		return wholeness{}, nil
	case err != nil:
		return wholeness{}, fmt.Errorf("asking which kinds of %s there are: %w", addonsv1.GroupVersion, err)
	case !creatable(offered, "addonstacks"), !creatable(offered, "clusteraddons"):
		return wholeness{}, nil
	}
	ns := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: corev1.SchemeGroupVersion.String(), Kind: "Namespace"}}
	if err := r.APIReader.Get(ctx, client.ObjectKey{Name: namespace}, ns); err != nil {
		return wholeness{}, fmt.Errorf("looking whether namespace %s is being deleted: %w", namespace, err)
	}
	crd := &metav1.PartialObjectMetadata{}
	crd.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	if err := r.APIReader.Get(ctx, client.ObjectKey{Name: "addonstacks." + addonsv1.GroupVersion.Group}, crd); err != nil && !apierrors.IsForbidden(err) {
		return wholeness{}, fmt.Errorf("looking since when there are AddonStacks: %w", err)
	}
	return wholeness{now: ns.DeletionTimestamp.IsZero(), since: crd.CreationTimestamp.Time}, nil
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
	if ca.Spec.ClusterRef == nil || member.IsObject(ca.Spec.ClusterRef.Kind) || !ca.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	switch r.Members.Absence(ca.Spec.ClusterRef.Kind) {
	case member.Foreign:
		return ctrl.Result{}, nil
	case member.Unsettled:
		return ctrl.Result{RequeueAfter: retry.Moment}, nil
	case member.Gone:
	}
	options := client.Preconditions{UID: &ca.UID, ResourceVersion: &ca.ResourceVersion}
	err := r.Client.Delete(ctx, ca, options)
	return management.Retry(ctx, ctrl.Result{}, wrap(err, "deleting the ClusterAddon of %s %s", ca.Spec.ClusterRef.Kind, ca.Spec.ClusterRef.Name))
}

// nameTaken sends an event that a cluster gets no add-ons, as the name of its ClusterAddon is that of another's.
func (r *Reconciler) nameTaken(ca *addonsv1.ClusterAddon, cluster *member.Member) {
	r.Recorder.Eventf(ca, cluster.Object(), corev1.EventTypeWarning, "NameTaken", "Assign",
		"%s would have a ClusterAddon of this name, too, and so gets none: rename one of them", cluster)
}
