// SPDX-License-Identifier: Apache-2.0

package addonstack

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/message"
	"github.com/cluster-chandler/chandler/internal/rollout"
)

// report writes status.rollout and the condition RolledOut, and sends an event of each wave that begins or ends, and of
// each phase that somebody has to know of.
func (r rollouts) report(q *gathered, in rollout.Input, d rollout.Decision) {
	s := q.Stack
	m, before := r.memoryOf(s), ptr.Deref(s.Status.Rollout, addonsv1.RolloutStatus{})
	is := &addonsv1.RolloutStatus{Revision: q.Revision(), Phase: d.Phase, WavesDone: int32(len(d.Over)), Since: before.Since}
	if at := slices.IndexFunc(q.Marked, func(r rollout.Revision) bool { return r.Completed && !r.Rejected }); at >= 0 {
		is.Completed = q.Marked[at].Name
	}
	if d.Completed {
		is.Completed = is.Revision
	}
	for _, c := range d.Waves {
		is.Waves = append(is.Waves, statusOf(c))
	}
	if len(d.Waves) > 0 {
		is.Wave = d.Waves[d.Wave].Name
	}
	if is.Since.IsZero() || before.Revision != is.Revision || before.Phase != is.Phase || before.Wave != is.Wave {
		is.Since = metav1.NewTime(r.Clock.Now()).Rfc3339Copy()
	}
	if r.shares(s) { // its status is of all instances
		before = *cmp.Or(m.told, is)
	}
	if before.Revision != is.Revision {
		before = addonsv1.RolloutStatus{}
	}
	m.told, s.Status.Rollout = is.DeepCopy(), is
	c := newCondition(addonsv1.RolledOutCondition, metav1.ConditionFalse, string(d.Phase), message.Shorten(rollout.Describe(client.ObjectKeyFromObject(s), in, d, q.rejection()), maxProblem))
	if d.Phase == addonsv1.RolloutCompleted {
		c.Status = metav1.ConditionTrue
	}
	conditions.Set(s, c)
	r.tell(s, &before, c.Message)
}

// rejection returns which revision was rejected last, and why; "" for none.
func (q *gathered) rejection() string {
	for i := range q.Revisions {
		if why, rejected := q.Revisions[i].Annotations[addonsv1.RolloutRejectedAnnotation]; rejected {
			return fmt.Sprintf("%s was rejected: %s", q.Revisions[i].Name, message.Shorten(why, maxProblem/4))
		}
	}
	return ""
}

func statusOf(c rollout.Count) addonsv1.RolloutWaveStatus {
	is := addonsv1.RolloutWaveStatus{
		Name: c.Name, Total: int32(c.Total), Updated: int32(c.Updated), Done: int32(c.Done), Failed: int32(len(c.Failed)), Away: int32(len(c.Away)),
	}
	if !c.ReadySince.IsZero() {
		is.ReadySince = metav1.NewTime(c.ReadySince)
	}
	return is
}

// tell sends events of how the rollout differs from before.
func (r rollouts) tell(s *addonsv1.AddonStack, before *addonsv1.RolloutStatus, text string) {
	is := s.Status.Rollout
	for i, wave := range is.Waves {
		was := first(before.Waves, func(w *addonsv1.RolloutWaveStatus) bool { return w.Name == wave.Name })
		if wave.Updated > 0 && before.Phase != "" && (was == nil || was.Updated == 0) {
			r.event(s, corev1.EventTypeNormal, "WaveStarted", "RollOut", fmt.Sprintf("Wave %s of %s begins: %d clusters", wave.Name, is.Revision, wave.Total))
		}
		if int32(i) >= before.WavesDone && int32(i) < is.WavesDone && wave.Total > 0 && before.Phase != "" {
			r.event(s, corev1.EventTypeNormal, "WaveDone", "RollOut", fmt.Sprintf("Wave %s of %s is done: %d of %d clusters are ready", wave.Name, is.Revision, wave.Done, wave.Total))
		}
	}
	if is.Phase == before.Phase || before.Phase == "" && is.Phase == addonsv1.RolloutCompleted {
		return
	}
	kind := corev1.EventTypeNormal
	if is.Phase == addonsv1.RolloutHalted || is.Phase == addonsv1.RolloutRollingBack || is.Phase == addonsv1.RolloutRolledBack {
		kind = corev1.EventTypeWarning
	}
	r.event(s, kind, "Rollout"+string(is.Phase), "RollOut", text)
}

// endRollout takes out what a rollout has left in the status of a stack that has none any more.
func (r *Reconciler) endRollout(s *addonsv1.AddonStack) {
	r.memoryOf(s).told, s.Status.Rollout = &addonsv1.RolloutStatus{}, nil
	conditions.Delete(s, addonsv1.RolledOutCondition)
	r.Turns.Give(client.ObjectKeyFromObject(s), "", nil)
}
