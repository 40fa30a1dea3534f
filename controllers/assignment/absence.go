// SPDX-License-Identifier: Apache-2.0

package assignment

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/assignment/candidate"
	"github.com/cluster-chandler/chandler/controllers/management"
	"github.com/cluster-chandler/chandler/internal/member"
	"github.com/cluster-chandler/chandler/internal/retry"
)

// absent returns the assigned stacks that aren't candidates and stay assigned: those that left the
// scope of this instance by relabelling, and those whose deletion isn't certain yet. For the
// latter it returns again as true.
func (r *Reconciler) absent(ctx context.Context, ca *addonsv1.ClusterAddon, candidates []candidate.Stack) (stay []addonsv1.StackRevision, again bool, err error) {
	for _, a := range ca.Spec.Stacks {
		key := client.ObjectKey{Namespace: ca.Namespace, Name: a.Name}
		if candidate.Find(candidates, a.Name) != nil {
			continue
		}
		s := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: addonsv1.GroupVersion.String(), Kind: "AddonStack"}}
		err := r.APIReader.Get(ctx, key, s)
		switch {
		case err == nil && s.DeletionTimestamp.IsZero():
			stay = append(stay, a)
			continue
		case client.IgnoreNotFound(err) != nil:
			return nil, false, fmt.Errorf("looking for AddonStack %s: %w", a.Name, err)
		}
		mayReturn, err := r.Missing.MayReturn(ctx, key, ca)
		if err != nil {
			return nil, false, fmt.Errorf("AddonStack %s is gone: %w", a.Name, err)
		}
		if mayReturn {
			stay, again = append(stay, a), true
		}
	}
	return stay, again, nil
}

// asWritten returns a ClusterAddon whose assigned stacks have the policies that are written now, and say whether they are
// paused. A stack that isn't there has those that it was last seen with.
func (r *Reconciler) asWritten(ca *addonsv1.ClusterAddon, candidates []candidate.Stack) *addonsv1.ClusterAddon {
	written := *ca
	written.Spec.Stacks = slices.Clone(ca.Spec.Stacks)
	for i := range written.Spec.Stacks {
		of := &written.Spec.Stacks[i]
		is := r.Missing.Written(client.ObjectKey{Namespace: ca.Namespace, Name: of.Name})
		if c := candidate.Find(candidates, of.Name); c != nil {
			is = c.At("")
		}
		if is.Name != "" {
			of.RemovalLimit, of.DeletionPolicy, of.Paused = is.RemovalLimit, is.DeletionPolicy, is.Paused
		}
	}
	return &written
}

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
