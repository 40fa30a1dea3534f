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
	"github.com/cluster-chandler/chandler/internal/artifact/failure"
)

// faults are what events last said is wrong with the sources of stacks.
// While a source is asked again the condition may be another one for a moment: what then
// comes out is no news if it is the same.
type faults struct {
	sources toldFaults
	bundles toldFaults // that make stacks invalid: of the Valid condition
}

// fault of a stack's sources, all empty if there is none.
type fault struct {
	uid             types.UID
	reason, message string
}

// toldFaults remember the last one of each stack.
type toldFaults struct {
	mu sync.Mutex
	of map[client.ObjectKey]fault
}

// get returns false for a stack of which none was set in this process.
func (t *toldFaults) get(s *addonsv1.AddonStack) (fault, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	known, ok := t.of[client.ObjectKeyFromObject(s)]
	if !ok || known.uid != s.UID {
		return fault{}, false
	}
	return known, true
}

func (t *toldFaults) set(s *addonsv1.AddonStack, f fault) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.of == nil {
		t.of = map[client.ObjectKey]fault{}
	}
	f.uid = s.UID
	t.of[client.ObjectKeyFromObject(s)] = f
}

func (t *toldFaults) forget(key client.ObjectKey) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.of, key)
}

// last returns the fault that was told last. Before the first one in this process it is
// that of the status.
func (t *faults) last(s *addonsv1.AddonStack) fault {
	if known, ok := t.sources.get(s); ok {
		return known
	}
	if c := conditions.Get(s, addonsv1.SourcesReadyCondition); c != nil && c.Status != metav1.ConditionTrue {
		return fault{reason: c.Reason, message: c.Message}
	}
	return fault{}
}

// remember the last fault before the condition becomes another one.
func (t *faults) remember(s *addonsv1.AddonStack) { t.sources.set(s, t.last(s)) }

func (t *faults) forget(key client.ObjectKey) {
	t.sources.forget(key)
	t.bundles.forget(key)
}

// lastInvalid returns what was last told to be wrong with the bundle, "" if that was
// mended: while Valid is False its message, then what it was.
func (t *faults) lastInvalid(s *addonsv1.AddonStack) string {
	if conditions.IsFalse(s, addonsv1.ValidCondition) {
		return conditions.GetMessage(s, addonsv1.ValidCondition)
	}
	known, _ := t.bundles.get(s)
	return known.message
}

func (t *faults) setInvalid(s *addonsv1.AddonStack, message string) {
	t.bundles.set(s, fault{message: message})
}

// warnOf sends an event of a fault that the stack itself found, when its message changes.
func (r *Reconciler) warnOf(s *addonsv1.AddonStack, reason, action, message string) {
	if r.faults.last(s).message != message {
		r.Recorder.Eventf(s, nil, corev1.EventTypeWarning, reason, action, "%s", message)
	}
	r.faults.sources.set(s, fault{reason: reason, message: message})
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
	r.faults.sources.set(s, last)
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
