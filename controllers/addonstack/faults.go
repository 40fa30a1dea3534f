// SPDX-License-Identifier: Apache-2.0

package addonstack

import (
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/source/failure"
)

// faults are what events last said is wrong with the sources of stacks.
// While a source is asked again the condition may be another one for a moment: what then
// comes out is no news if it is the same.
type faults struct {
	mu      sync.Mutex
	of      map[client.ObjectKey]fault
	invalid map[client.ObjectKey]fault // of bundles: of the Valid condition
}

// fault of a stack's sources, all empty if there is none.
type fault struct {
	uid             types.UID
	reason, message string
}

// last returns the fault that was told last. Before the first one in this process it is
// that of the status.
func (t *faults) last(s *addonsv1.AddonStack) fault {
	t.mu.Lock()
	defer t.mu.Unlock()
	if known, ok := t.of[client.ObjectKeyFromObject(s)]; ok && known.uid == s.UID {
		return known
	}
	if c := conditions.Get(s, addonsv1.SourcesReadyCondition); c != nil && c.Status != metav1.ConditionTrue {
		return fault{uid: s.UID, reason: c.Reason, message: c.Message}
	}
	return fault{uid: s.UID}
}

// remember the last fault before the condition becomes another one.
func (t *faults) remember(s *addonsv1.AddonStack) { t.set(s, t.last(s)) }

func (t *faults) set(s *addonsv1.AddonStack, f fault) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.of == nil {
		t.of = map[client.ObjectKey]fault{}
	}
	f.uid = s.UID
	t.of[client.ObjectKeyFromObject(s)] = f
}

func (t *faults) forget(key client.ObjectKey) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.of, key)
	delete(t.invalid, key)
}

// lastInvalid returns what was last told to be wrong with the bundle, "" if that was
// mended: while Valid is False its message, then what it was.
func (t *faults) lastInvalid(s *addonsv1.AddonStack) string {
	if conditions.IsFalse(s, addonsv1.ValidCondition) {
		return conditions.GetMessage(s, addonsv1.ValidCondition)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if known := t.invalid[client.ObjectKeyFromObject(s)]; known.uid == s.UID {
		return known.message
	}
	return ""
}

func (t *faults) setInvalid(s *addonsv1.AddonStack, message string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if message == "" {
		delete(t.invalid, client.ObjectKeyFromObject(s))
		return
	}
	if t.invalid == nil {
		t.invalid = map[client.ObjectKey]fault{}
	}
	t.invalid[client.ObjectKeyFromObject(s)] = fault{uid: s.UID, message: message}
}

// warnOf sends an event of a fault that the stack itself found, when its message changes.
func (r *Reconciler) warnOf(s *addonsv1.AddonStack, reason, action, message string) {
	if r.faults.last(s).message != message {
		r.Recorder.Eventf(s, nil, corev1.EventTypeWarning, reason, action, "%s", message)
	}
	r.faults.set(s, fault{reason: reason, message: message})
}

// warnOfClusters sends an event of what clusters say of the sources: one when the
// condition turns False, however many say so, and when it is for another reason.
func (r *Reconciler) warnOfClusters(s *addonsv1.AddonStack, c metav1.Condition, sources []addonsv1.StackSource) {
	last := r.faults.last(s)
	switch {
	case c.Status == metav1.ConditionFalse:
		if last.reason != c.Reason {
			r.Recorder.Eventf(s, nil, corev1.EventTypeWarning, c.Reason, "Fetch", "%s", c.Message)
		}
		last = fault{reason: c.Reason, message: c.Message}
	case c.Status == metav1.ConditionTrue && !anyAsked(sources):
		last = fault{}
	}
	r.faults.set(s, last)
}

// anyAsked says whether a source is being asked now.
func anyAsked(sources []addonsv1.StackSource) bool {
	for i := range sources {
		if c := meta.FindStatusCondition(sources[i].Conditions, addonsv1.SourceAvailableCondition); c != nil && c.Reason == failure.ArtifactPending {
			return true
		}
	}
	return false
}
