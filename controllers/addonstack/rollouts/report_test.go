// SPDX-License-Identifier: Apache-2.0

package rollouts_test

import (
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
	"github.com/cluster-chandler/chandler/controllers/addonstack/report"
	"github.com/cluster-chandler/chandler/controllers/addonstack/rollouts"
	"github.com/cluster-chandler/chandler/controllers/management"
	"github.com/cluster-chandler/chandler/internal/rollout"
	"github.com/cluster-chandler/chandler/internal/standing"
	"github.com/cluster-chandler/chandler/test/stacks"
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
			rollouts.Tell(s, &tc.before, "why", report.Events{Recorder: recorder})
			if got := stacks.Notes(recorder); !slices.EqualFunc(got, tc.want, strings.HasPrefix) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// An instance tells once how far its own clusters of a shared stack are, whose status is of all instances. What was so when the
// process began isn't told.
func TestSharedRolloutIsToldOnce(t *testing.T) {
	recorder := events.NewFakeRecorder(10)
	r := rollouts.Rollouts{
		Events: report.Events{Recorder: recorder}, WatchFilter: "blue", Turns: &management.Turns{}, Clock: clocktesting.NewFakePassiveClock(time.Unix(1e9, 0)),
	}
	decided := func(phase addonsv1.RolloutPhase, done, canary int) *rollout.Decision {
		return &rollout.Decision{Phase: phase, Over: []string{"canary", "rest"}[:done], Completed: phase == addonsv1.RolloutCompleted, Waves: []rollout.Count{{Name: "canary", Total: 1, Updated: canary}, {Name: "rest"}}}
	}
	strategy := rollout.Strategy{Waves: []rollout.Wave{{Name: "canary"}, {Name: "rest"}}}
	var m *rollouts.Memory
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
			m = &rollouts.Memory{}
		}
		for _, want := range [][]string{step.want, nil} {
			s := &addonsv1.AddonStack{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "platform", Labels: map[string]string{clusterv1.WatchLabel: addonsv1.SharedWatchFilter}}}
			s.Status.Rollout = &addonsv1.RolloutStatus{Revision: step.target, Phase: addonsv1.RolloutHalted} // by another instance
			q := standing.RolloutOf(s, []appsv1.ControllerRevision{{ObjectMeta: metav1.ObjectMeta{Name: step.target}}})
			if step.decides != nil {
				r.Report(q, m, rollout.Input{Target: step.target, Strategy: strategy}, *step.decides)
			} else {
				r.End(s, m)
			}
			if got := stacks.Notes(recorder); !slices.EqualFunc(got, want, strings.HasPrefix) {
				t.Errorf("%s: got %q, want %q", step.name, got, want)
			}
		}
	}
}
