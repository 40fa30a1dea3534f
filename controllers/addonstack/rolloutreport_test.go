// SPDX-License-Identifier: Apache-2.0

package addonstack

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/management"
	"github.com/cluster-chandler/chandler/internal/rollout"
	"github.com/cluster-chandler/chandler/internal/stack"
	"github.com/cluster-chandler/chandler/internal/standing"
	"github.com/cluster-chandler/chandler/test/must"
)

// Each wave's beginning and end are told once, and a rollout that stops is a warning.
func TestWavesAreToldOnce(t *testing.T) {
	status := func(phase addonsv1.RolloutPhase, done, canary, late int32) addonsv1.RolloutStatus {
		return addonsv1.RolloutStatus{Revision: "platform-2", Phase: phase, WavesDone: done, Waves: []addonsv1.RolloutWaveStatus{
			{Name: "canary", Total: 1, Updated: canary}, {Name: "late", Total: 2, Updated: late}, {Name: "rest"},
		}}
	}
	soaks := status(addonsv1.RolloutSoaking, 0, 1, 0)
	for name, tc := range map[string]struct {
		before, is addonsv1.RolloutStatus
		want       []string
	}{
		"a wave begins":             {status(addonsv1.RolloutProgressing, 0, 0, 0), status(addonsv1.RolloutProgressing, 0, 1, 0), []string{"Normal WaveStarted Wave canary"}},
		"it continues":              {soaks, soaks, nil},
		"it is done":                {soaks, status(addonsv1.RolloutSoaking, 1, 1, 0), []string{"Normal WaveDone Wave canary"}},
		"the next one begins":       {status(addonsv1.RolloutProgressing, 1, 1, 0), status(addonsv1.RolloutProgressing, 1, 1, 1), []string{"Normal WaveStarted Wave late"}},
		"it continues after a wave": {status(addonsv1.RolloutProgressing, 1, 1, 1), status(addonsv1.RolloutProgressing, 1, 1, 2), nil},
		"it halts":                  {soaks, status(addonsv1.RolloutHalted, 0, 1, 0), []string{"Warning RolloutHalted why"}},
		"all is done":               {status(addonsv1.RolloutProgressing, 1, 1, 2), status(addonsv1.RolloutCompleted, 3, 1, 2), []string{"Normal WaveDone Wave late", "Normal RolloutCompleted why"}},
		"another target":            {addonsv1.RolloutStatus{}, status(addonsv1.RolloutProgressing, 1, 1, 1), []string{"Normal RolloutProgressing why"}},
		"nothing was to be done":    {addonsv1.RolloutStatus{}, status(addonsv1.RolloutCompleted, 3, 1, 2), nil},
	} {
		t.Run(name, func(t *testing.T) {
			recorder := events.NewFakeRecorder(10)
			s := &addonsv1.AddonStack{Status: addonsv1.AddonStackStatus{Rollout: &tc.is}}
			rollouts{&Reconciler{Recorder: recorder}}.tell(s, &tc.before, "why")
			if got := notesOf(recorder); !slices.EqualFunc(got, tc.want, strings.HasPrefix) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// An instance tells once how far its own clusters of a shared stack are, whose status is of all instances. What was so when the
// process began isn't told.
func TestSharedRolloutIsToldOnce(t *testing.T) {
	recorder := events.NewFakeRecorder(10)
	instance := func() *Reconciler {
		return &Reconciler{Recorder: recorder, WatchFilter: "blue", Turns: &management.Turns{}, Clock: clocktesting.NewFakePassiveClock(time.Unix(1e9, 0))}
	}
	decided := func(phase addonsv1.RolloutPhase, done, canary int) *rollout.Decision {
		return &rollout.Decision{Phase: phase, Over: []string{"canary", "rest"}[:done], Completed: phase == addonsv1.RolloutCompleted, Waves: []rollout.Count{{Name: "canary", Total: 1, Updated: canary}, {Name: "rest"}}}
	}
	strategy := rollout.Strategy{Waves: []rollout.Wave{{Name: "canary"}, {Name: "rest"}}}
	var r *Reconciler
	for _, step := range []struct {
		name    string
		starts  bool // the process
		target  string
		decides *rollout.Decision // nil without a rollout
		want    []string
	}{
		{"no rollout yet", true, "1", nil, nil},
		{"the first one", false, "1", decided(addonsv1.RolloutProgressing, 0, 0), []string{"Normal RolloutProgressing"}},
		{"a wave begins", false, "1", decided(addonsv1.RolloutProgressing, 0, 1), []string{"Normal WaveStarted Wave canary of 1"}},
		{"it soaks", false, "1", decided(addonsv1.RolloutSoaking, 0, 1), []string{"Normal RolloutSoaking"}},
		{"a restart", true, "1", decided(addonsv1.RolloutSoaking, 0, 1), nil},
		{"the wave is done", false, "1", decided(addonsv1.RolloutCompleted, 2, 1), []string{"Normal WaveDone Wave canary of 1", "Normal RolloutCompleted"}},
		{"another target", false, "2", decided(addonsv1.RolloutProgressing, 0, 0), []string{"Normal RolloutProgressing"}},
		{"it waits for others", false, "2", decided(addonsv1.RolloutWaitingForInstances, 1, 1), []string{"Normal WaveStarted Wave canary of 2", "Normal WaveDone Wave canary of 2", "Normal RolloutWaitingForInstances"}},
		{"one more target", false, "3", decided(addonsv1.RolloutWaitingForInstances, 1, 1), []string{"Normal RolloutWaitingForInstances"}},
	} {
		if step.starts {
			r = instance()
		}
		for _, want := range [][]string{step.want, nil} {
			s := &addonsv1.AddonStack{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "platform", Labels: map[string]string{clusterv1.WatchLabel: addonsv1.SharedWatchFilter}}}
			s.Status.Rollout = &addonsv1.RolloutStatus{Revision: step.target, Phase: addonsv1.RolloutHalted} // by another instance
			q := &gathered{Rollout: standing.RolloutOf(s, []appsv1.ControllerRevision{{ObjectMeta: metav1.ObjectMeta{Name: step.target}}})}
			if step.decides != nil {
				rollouts{r}.report(q, rollout.Input{Target: step.target, Strategy: strategy}, *step.decides)
			} else {
				r.endRollout(s)
			}
			if got := notesOf(recorder); !slices.EqualFunc(got, want, strings.HasPrefix) {
				t.Errorf("%s: got %q, want %q", step.name, got, want)
			}
		}
	}
}

// However many revisions were rejected after it, the one that clusters go back to stays, also while none of them runs it. So does
// one that a cluster runs, and it takes no place of those that none runs.
func TestHistoryKeepsTheWayBack(t *testing.T) {
	r, s, _ := keeping(t)
	read(t, r.Client, s)
	s.Spec.Rollout = &addonsv1.Rollout{}
	var revisions []appsv1.ControllerRevision
	for i := range historyLimit + 6 { // the newest first
		revision := stack.Snapshot(s, fmt.Appendf(nil, `{"addons":[{"name":"a%d"}]}`, i), int64(100-i))
		attempt := rollout.Attempt{Number: revision.Revision, Cause: rollout.Edited, Started: time.Unix(1e9, 0)}
		if i == historyLimit+5 {
			attempt.Completed = attempt.Started
		} else {
			metav1.SetMetaDataAnnotation(&revision.ObjectMeta, addonsv1.RolloutRejectedAnnotation, "broken")
		}
		attempt.Note(revision)
		must.Succeed(t, r.Client.Create(t.Context(), revision))
		revisions = append(revisions, *revision)
	}
	for name, runs := range map[string]int{"prod": historyLimit + 4, "test": 5} {
		ca := &addonsv1.ClusterAddon{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name}}
		ca.Spec.Stacks = []addonsv1.StackRevision{{Name: s.Name, Revision: revisions[runs].Name}}
		if name == "test" { // it goes back to another one
			ca.Status.Stacks = []addonsv1.StackStatus{{Name: s.Name, Revision: revisions[runs].Name, Previous: revisions[historyLimit+3].Name}}
		}
		must.Succeed(t, r.Client.Create(t.Context(), ca))
	}
	must.Succeed(t, (revisionHistory{r}).trimHistory(t.Context(), s, revisions))
	left := &appsv1.ControllerRevisionList{}
	must.Succeed(t, r.Client.List(t.Context(), left))
	for i, want := range map[int]bool{0: true, 5: true, historyLimit + 1: true, historyLimit + 2: false, historyLimit + 3: true, historyLimit + 4: true, historyLimit + 5: true} {
		if has := slices.ContainsFunc(left.Items, func(is appsv1.ControllerRevision) bool { return is.Name == revisions[i].Name }); has != want {
			t.Errorf("revision %d is there: %t", i, has)
		}
	}
}
