// SPDX-License-Identifier: Apache-2.0

// Package plan has what a change of an AddonStack would do to clusters: what an engine found out about each one, and how that is
// put together for people. It asks nothing.
package plan

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// Previewer finds out what a revision of a stack would do to one cluster.
type Previewer interface {
	// Preview asks the cluster by reads and dry runs. It writes nothing, and holds no add-on. Of a cluster that doesn't answer, or
	// isn't connected, it returns [Silent]. With an error nothing is known. The add-ons are those of the stack, those that leave included.
	Preview(ctx context.Context, r Request) ([]Addon, error)
	// IsSlow reports whether the cluster answered slowly, or not at all, when it was worked on last.
	IsSlow(cluster types.NamespacedName) bool
}

// Request says what is to be found out.
type Request struct {
	// Cluster is the key of the Cluster, and of its ClusterAddon.
	Cluster types.NamespacedName
	// Stack is the name of the AddonStack.
	Stack string
	// Revision is the name that the ControllerRevision has, or would have.
	Revision string
	// Spec is that of the revision, with exact versions, what its bundle adds, and the policies as they would count. It is nil if
	// the revision doesn't select the cluster: all add-ons of the stack go then.
	Spec *addonsv1.AddonStackSpec
	// Inputs are the digests of values that the revision pins, or would pin.
	Inputs stack.Inputs
	// RecordedValues gives add-ons that take a release of Helm over the values that the release has.
	RecordedValues bool
}

// States of an add-on, the worst one last.
const (
	// Same: no object is written or removed.
	Same addonsv1.PlanState = "Same"
	// Held: nothing happens before something else does, as an upgrade of Kubernetes, values, or another add-on. The reason says which.
	// If that is known, the changes say what happens then.
	Held addonsv1.PlanState = "Held"
	// Changed: the changes say which objects are.
	Changed addonsv1.PlanState = "Changed"
	// NotChecked: it can't be known, or not of some objects.
	NotChecked addonsv1.PlanState = "NotChecked"
	// Refused: it would fail, of itself or for one of its objects.
	Refused addonsv1.PlanState = "Refused"
	// Unreachable is that of a whole cluster: it doesn't answer.
	Unreachable addonsv1.PlanState = "Unreachable"
)

// Addon is what becomes of an add-on on a cluster, or of all of them if it has no name.
type Addon struct {
	addonsv1.PlanAddon
	// Changes are of all objects but those that stay the same.
	Changes []Change
}

// In returns what becomes of an add-on, without its name. Nothing secret may be in the message.
func In(state addonsv1.PlanState, reason, message string) Addon {
	return Addon{PlanAddon: addonsv1.PlanAddon{State: state, Reason: reason, Message: message}}
}

// Stopped returns what becomes of an add-on that something stops: it waits for that, or is refused.
func Stopped(by *failure.Error, message string) Addon {
	if by.Wait {
		return In(Held, by.Reason, message)
	}
	return In(Refused, by.Reason, message)
}

// Silent returns what becomes of the add-ons of a cluster that doesn't answer.
func Silent() []Addon { return []Addon{In(Unreachable, "", "The cluster doesn't answer")} }

// Actions on objects.
const (
	Create   addonsv1.PlanAction = "Create"
	Update   addonsv1.PlanAction = "Change"   // fields get other values
	Adopt    addonsv1.PlanAction = "Adopt"    // it is there, of somebody else or of nobody
	Recreate addonsv1.PlanAction = "Recreate" // deleted, and created again
	Keep     addonsv1.PlanAction = "Keep"     // it stays, and isn't the add-on's any more
	Delete   addonsv1.PlanAction = "Delete"
	Hook     addonsv1.PlanAction = "Hook" // it runs
	Refuse   addonsv1.PlanAction = "Refused"
	Unknown  addonsv1.PlanAction = "NotChecked"
)

// Change is what becomes of an object. Nothing secret, and nothing of an object of others, is in its message.
type Change struct {
	addonsv1.PlanChange
	// Altered are the fields that get another value, come or go. Of a Secret they are its keys.
	Altered []Field
}

// As returns the change with what becomes of the object.
func (c Change) As(action addonsv1.PlanAction, reason, message string) Change {
	c.Action, c.Reason, c.Message = action, reason, message
	return c
}
