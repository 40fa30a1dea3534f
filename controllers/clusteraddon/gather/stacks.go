// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/cluster-api/util/annotations"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/result"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// AssignmentGrace is how long an assignment may be outdated, or name a stack that is gone, before
// the status says so. Mostly it follows within milliseconds.
const AssignmentGrace = 10 * time.Second

// DeletionGrace is how long an assignment may name a stack of which it is known that it is there no more. It follows once the
// stack has been gone for a while, and later where many go at once.
const DeletionGrace = 5 * time.Minute

// Stack is a stack that the cluster is to run.
type Stack struct {
	addonsv1.StackRevision
	// Written is the stack as it is written now, nil if it isn't there for this instance.
	Written *addonsv1.AddonStack
	// Deleted says that the stack isn't there for any instance.
	Deleted bool
	// Spec of the revision, nil if it can't be found, or isn't known in full.
	Spec *addonsv1.AddonStackSpec
	// Generation is the stack's last one that the revision is for.
	Generation int64
	// Pinned are the digests of values that the revision was made with.
	Pinned stack.Inputs
	// Unknown are the fields of the revision that this program doesn't know.
	Unknown []string
}

// Stacks reads the stacks that a cluster is to run, and their revisions.
func (r Reader) Stacks(ctx context.Context, assigned []addonsv1.StackRevision) ([]Stack, error) {
	all := make([]Stack, 0, len(assigned))
	for _, a := range assigned {
		one := Stack{StackRevision: a, Written: &addonsv1.AddonStack{}}
		if err := r.Cache.Get(ctx, r.keyOf(a.Name), one.Written); apierrors.IsNotFound(err) {
			one.Written = nil
			if one.Deleted, err = r.isDeleted(ctx, a.Name); err != nil {
				return nil, err
			}
		} else if err != nil {
			return nil, fmt.Errorf("reading AddonStack %s: %w", a.Name, err)
		}
		if a.Revision != "" {
			revision := &appsv1.ControllerRevision{}
			err := r.Cache.Get(ctx, r.keyOf(a.Revision), revision)
			if err == nil {
				one.Spec, one.Unknown, err = stack.Read(revision)
			}
			if err == nil {
				one.Pinned, err = stack.InputsOf(revision)
				one.Generation = stack.Generation(revision)
			}
			if len(one.Unknown) > 0 {
				one.Spec = nil
			}
			if client.IgnoreNotFound(err) != nil { // its coming is an event
				return nil, fmt.Errorf("reading revision of AddonStack %s: %w", a.Name, err)
			}
		}
		all = append(all, one)
	}
	return all, nil
}

// isDeleted reports whether a stack that this instance doesn't see is there for none. It asks once the assignment should have
// followed.
func (r Reader) isDeleted(ctx context.Context, name string) (bool, error) {
	if since, known := r.OutdatedSince[name]; !known || r.Now.Sub(since) < AssignmentGrace {
		return false, nil
	}
	s := &metav1.PartialObjectMetadata{}
	s.SetGroupVersionKind(addonsv1.GroupVersion.WithKind("AddonStack"))
	err := r.Direct.Get(ctx, r.keyOf(name), s)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("looking for AddonStack %s: %w", name, err)
	}
	return err != nil, nil
}

// paused returns which of the stacks are paused. One that isn't there is so if it was when its add-ons were last looked at: a
// deletion is no wish to go on with what the pause holds up.
func (r Reader) paused(ctx context.Context, names sets.Set[string], was []addonsv1.AddonStatus) (sets.Set[string], error) {
	paused := sets.New[string]()
	for name := range names {
		s := &addonsv1.AddonStack{}
		err := r.Cache.Get(ctx, r.keyOf(name), s)
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("reading AddonStack %s: %w", name, err)
		}
		if annotations.HasPaused(s) || err != nil && result.HasPaused(name, was) {
			paused.Insert(name)
		}
	}
	return paused, nil
}
