// SPDX-License-Identifier: Apache-2.0

package rollouts

import (
	"cmp"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/addonstack/report"
	"github.com/cluster-chandler/chandler/controllers/addonstack/sharing"
	"github.com/cluster-chandler/chandler/internal/message"
	"github.com/cluster-chandler/chandler/internal/rollout"
	"github.com/cluster-chandler/chandler/internal/standing"
)

// Report writes status.rollout and the condition RolledOut, and sends an event of each wave that begins or ends, and of
// each phase that somebody has to know of.
func (r Rollouts) Report(q *standing.Rollout, m *Memory, in rollout.Input, d rollout.Decision) {
	s := q.Stack
	before := ptr.Deref(s.Status.Rollout, addonsv1.RolloutStatus{})
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
	if sharing.IsShared(s, r.WatchFilter) { // its status is of all instances
		before = *cmp.Or(m.reported, is)
	}
	if before.Revision != is.Revision {
		before = addonsv1.RolloutStatus{}
	}
	m.reported, s.Status.Rollout = is.DeepCopy(), is
	c := report.Condition(addonsv1.RolledOutCondition, metav1.ConditionFalse, string(d.Phase), message.Shorten(rollout.Describe(client.ObjectKeyFromObject(s), in, d, rejectionIn(q.Revisions)), report.MaxProblem))
	if d.Phase == addonsv1.RolloutCompleted {
		c.Status = metav1.ConditionTrue
	}
	conditions.Set(s, c)
	Tell(s, &before, c.Message, r.Events)
}

// rejectionIn returns which revision was rejected last, and why; "" for none.
func rejectionIn(revisions []appsv1.ControllerRevision) string {
	for i := range revisions {
		if why, rejected := revisions[i].Annotations[addonsv1.RolloutRejectedAnnotation]; rejected {
			return fmt.Sprintf("%s was rejected: %s", revisions[i].Name, message.Shorten(why, report.MaxProblem/4))
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

// Tell sends events of how the rollout differs from before.
func Tell(s *addonsv1.AddonStack, before *addonsv1.RolloutStatus, text string, events report.Events) {
	is := s.Status.Rollout
	for i, wave := range is.Waves {
		had := slices.ContainsFunc(before.Waves, func(w addonsv1.RolloutWaveStatus) bool { return w.Name == wave.Name && w.Updated > 0 })
		if wave.Updated > 0 && before.Phase != "" && !had {
			events.Send(s, corev1.EventTypeNormal, "WaveStarted", "RollOut", fmt.Sprintf("Wave %s of %s begins: %d clusters", wave.Name, is.Revision, wave.Total))
		}
		if int32(i) >= before.WavesDone && int32(i) < is.WavesDone && wave.Total > 0 && before.Phase != "" {
			events.Send(s, corev1.EventTypeNormal, "WaveDone", "RollOut", fmt.Sprintf("Wave %s of %s is done: %d of %d clusters are ready", wave.Name, is.Revision, wave.Done, wave.Total))
		}
	}
	if is.Phase == before.Phase || before.Phase == "" && is.Phase == addonsv1.RolloutCompleted {
		return
	}
	kind := corev1.EventTypeNormal
	if is.Phase == addonsv1.RolloutHalted || is.Phase == addonsv1.RolloutRollingBack || is.Phase == addonsv1.RolloutRolledBack {
		kind = corev1.EventTypeWarning
	}
	events.Send(s, kind, "Rollout"+string(is.Phase), "RollOut", text)
}

// End removes the rollout from the status of a stack that has none any more.
func (r Rollouts) End(s *addonsv1.AddonStack, m *Memory) {
	m.reported, s.Status.Rollout = &addonsv1.RolloutStatus{}, nil
	conditions.Delete(s, addonsv1.RolledOutCondition)
	r.Turns.Give(client.ObjectKeyFromObject(s), "", nil)
}
