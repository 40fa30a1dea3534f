// SPDX-License-Identifier: Apache-2.0

// Package plan has what a change of an AddonStack would do to clusters: what an engine found out about each one, and how that is
// put together for people. It asks nothing.
package plan

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// Previewer finds out what a revision of a stack would do to one cluster.
type Previewer interface {
	// Preview asks the cluster by reads and dry runs. It writes nothing, and holds no add-on. Of a cluster that doesn't answer, or
	// isn't connected, it returns [Silent]. With an error nothing is known.
	Preview(ctx context.Context, r Request) (Cluster, error)
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
	// Key is that of the digests of fields: see [FieldOf].
	Key []byte
}

// Cluster is what a revision would do to a cluster.
type Cluster struct {
	// Addons are those of the stack, those that go included, in the order of the spec.
	Addons []Addon
}

// State says what becomes of an add-on.
type State string

// States of an add-on, the worst one last.
const (
	// Same: no object is written or removed.
	Same State = "Same"
	// Held: nothing happens before something else does, as an upgrade of Kubernetes, values, or another add-on. The reason says which.
	// If that is known, the changes say what happens then.
	Held State = "Held"
	// Changed: the changes say which objects are.
	Changed State = "Changed"
	// NotChecked: it can't be known, or not of some objects.
	NotChecked State = "NotChecked"
	// Refused: it would fail, of itself or for one of its objects.
	Refused State = "Refused"
	// Unreachable is that of a whole cluster: it doesn't answer.
	Unreachable State = "Unreachable"
)

// Whole returns what becomes of a cluster of which nothing is known but this.
func Whole(state State, reason, message string) Cluster {
	return Cluster{Addons: []Addon{{State: state, Reason: reason, Message: message}}}
}

// Silent returns what becomes of a cluster that doesn't answer.
func Silent() Cluster { return Whole(Unreachable, "", "The cluster doesn't answer") }

// Addon is what becomes of an add-on on a cluster.
type Addon struct {
	// Namespace and Name are those of the release.
	Namespace, Name string
	State           State
	// Removed says that the stack has the add-on no more. Its objects are deleted or kept.
	Removed bool
	// Reason is one of docs/reasons.md, "" for none. It says why the add-on is held, refused or not checked as a whole.
	Reason string
	// Message says so to people. Nothing secret is in it.
	Message string
	// Changes are of all objects but those that stay the same.
	Changes []Change
}

// Object names an object of a cluster.
type Object struct{ APIVersion, Kind, Namespace, Name string }

func (o Object) String() string {
	if o.Namespace == "" {
		return o.Kind + " " + o.Name
	}
	return o.Kind + " " + o.Namespace + "/" + o.Name
}

// Action says what becomes of an object.
type Action string

// Actions on objects.
const (
	Create   Action = "Create"
	Update   Action = "Change"   // fields get other values
	Adopt    Action = "Adopt"    // it is there, of somebody else or of nobody
	Recreate Action = "Recreate" // deleted, and created again
	Keep     Action = "Keep"     // it stays, and isn't the add-on's any more
	Delete   Action = "Delete"
	Hook     Action = "Hook" // it runs
	Refuse   Action = "Refused"
	Unknown  Action = "NotChecked"
)

// Change is what becomes of an object.
type Change struct {
	Object Object
	Action Action
	// Restarts says that the pods of a workload are replaced.
	Restarts bool
	// Reason is one of docs/reasons.md, "" for none, as of Keep, Refused and NotChecked.
	Reason string
	// Message says so to people. Nothing secret, and nothing of an object of others, is in it.
	Message string
	// Fields that get another value, come or go. Of a Secret they are its keys.
	Fields []Field
}
