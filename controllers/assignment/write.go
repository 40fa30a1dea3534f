// SPDX-License-Identifier: Apache-2.0

package assignment

import (
	"context"
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/assignment/candidate"
	"github.com/cluster-chandler/chandler/controllers/assignment/removal"
	"github.com/cluster-chandler/chandler/controllers/management"
	"github.com/cluster-chandler/chandler/internal/member"
	"github.com/cluster-chandler/chandler/internal/message"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// write makes or patches the ClusterAddon, if it isn't as planned.
func (r *Reconciler) write(ctx context.Context, p *removal.Plan) error {
	cluster, existing := p.Cluster, p.Stored
	stacks, left := candidate.Limited(p.Wanted, existing.Spec.Stacks)
	if existing.Name == "" {
		return r.create(ctx, cluster, stacks)
	}
	if !existing.DeletionTimestamp.IsZero() {
		return nil // its end is an event, and the next one is made then
	}
	wanted := existing.DeepCopy()
	shape(wanted, cluster, stacks)
	removal.Note(wanted, p.Removed, r.Clock.Now())
	delete(wanted.Annotations, addonsv1.ConfirmRemovalAnnotation)
	if equality.Semantic.DeepEqual(wanted, existing) {
		return nil
	}
	if len(left) > 0 {
		r.Recorder.Eventf(wanted, cluster.Object(), corev1.EventTypeWarning, addonsv1.TooManyStacksReason, "Assign",
			"More than the %d AddonStacks that a cluster can run select %s. Left out: %s", stack.MaxOfCluster, cluster, message.FirstFew(left))
	}
	removal.Report(r.Recorder, existing, wanted, cluster)
	return r.patch(ctx, existing, wanted, cluster)
}

// patch writes what differs of a ClusterAddon, if anything does.
func (r *Reconciler) patch(ctx context.Context, before, wanted *addonsv1.ClusterAddon, cluster *member.Member) error {
	if equality.Semantic.DeepEqual(wanted, before) {
		return nil
	}
	patch, err := management.Changes(before, wanted)
	if err != nil {
		return err
	}
	return wrap(r.Client.Patch(ctx, wanted, patch), "writing the ClusterAddon of %s", cluster)
}

// create makes the ClusterAddon.
func (r *Reconciler) create(ctx context.Context, cluster *member.Member, stacks []addonsv1.StackRevision) error {
	ca := &addonsv1.ClusterAddon{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: cluster.ClusterAddon().Name}}
	shape(ca, cluster, stacks)
	err := r.Client.Create(ctx, ca)
	if err == nil {
		r.Recorder.Eventf(ca, cluster.Object(), corev1.EventTypeNormal, "ClusterAddonCreated", "Assign", "Created for %s", cluster)
		return nil
	}
	if !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating the ClusterAddon of %s: %w", cluster, err)
	}
	return r.takeOver(ctx, cluster)
}

// takeOver takes over a ClusterAddon whose Cluster has come into the scope by relabelling.
func (r *Reconciler) takeOver(ctx context.Context, cluster *member.Member) error {
	ca := &addonsv1.ClusterAddon{}
	if err := r.APIReader.Get(ctx, cluster.ClusterAddon(), ca); err != nil {
		return wrap(err, "reading the ClusterAddon of %s", cluster)
	}
	if !equality.Semantic.DeepEqual(ca.Spec.ClusterRef, cluster.Reference()) {
		r.nameTaken(ca, cluster)
		return nil
	}
	if ca.Labels[clusterv1.WatchLabel] == cluster.Labels[clusterv1.WatchLabel] {
		return nil // the cache is behind; when it shows the object, that is an event
	}
	before := ca.DeepCopy()
	shape(ca, cluster, ca.Spec.Stacks) // the stacks follow once the cache shows it
	patch, err := management.Changes(before, ca)
	if err != nil {
		return err
	}
	return wrap(r.Client.Patch(ctx, ca, patch), "taking over the ClusterAddon of %s", cluster)
}

// wrap returns the error with the action that failed. An object that is gone is no failure: its end
// is an event.
func wrap(err error, format string, args ...any) error {
	if err = client.IgnoreNotFound(err); err != nil {
		return fmt.Errorf(format+": %w", append(args, err)...)
	}
	return nil
}

// shape sets what this controller owns of a ClusterAddon.
func shape(ca *addonsv1.ClusterAddon, cluster *member.Member, stacks []addonsv1.StackRevision) {
	if ca.Labels == nil {
		ca.Labels = map[string]string{}
	}
	if cluster.Cluster != nil { // clusterctl moves what carries it with the Cluster
		ca.Labels[clusterv1.ClusterNameLabel] = cluster.Name
	}
	if filter, ok := cluster.Labels[clusterv1.WatchLabel]; ok {
		ca.Labels[clusterv1.WatchLabel] = filter
	} else {
		delete(ca.Labels, clusterv1.WatchLabel)
	}
	if cluster.Owner != nil {
		ca.OwnerReferences = util.EnsureOwnerRef(ca.OwnerReferences, *cluster.Owner)
	}
	labelStacks(ca, stacks)
	ca.Spec.ClusterName, ca.Spec.ClusterRef = cluster.Name, cluster.Reference()
	ca.Spec.Stacks = stacks
}

// labelStacks sets a label for each of the stacks.
func labelStacks(ca *addonsv1.ClusterAddon, stacks []addonsv1.StackRevision) {
	maps.DeleteFunc(ca.Labels, func(key, _ string) bool { return strings.HasPrefix(key, addonsv1.AssignedStackLabelPrefix) })
	for _, s := range stacks {
		if key := addonsv1.AssignedStackLabelPrefix + s.Name; len(content.IsLabelKey(key)) == 0 { // else no AddonStack has the name
			ca.Labels[key] = ""
		}
	}
}
