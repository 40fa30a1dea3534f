// SPDX-License-Identifier: Apache-2.0

package addonstack

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/stack"
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

// However many revisions were rejected after it, the one that clusters go back to stays, also while none of them runs it. So does
// one that a cluster runs, and it takes no place of those that none runs.
func TestHistoryKeepsTheWayBack(t *testing.T) {
	r, s, _ := keeping(t)
	read(t, r.Client, s)
	s.Spec.Rollout = &addonsv1.Rollout{}
	var revisions []appsv1.ControllerRevision
	for i := range historyLimit + 5 { // the newest first
		revision := stack.Snapshot(s, fmt.Appendf(nil, `{"addons":[{"name":"a%d"}]}`, i), int64(100-i))
		annotation := addonsv1.RolloutRejectedAnnotation
		if i == historyLimit+4 {
			annotation = addonsv1.RolloutCompletedAnnotation
		}
		metav1.SetMetaDataAnnotation(&revision.ObjectMeta, annotation, "2026-01-01T00:00:00Z")
		must.Succeed(t, r.Client.Create(t.Context(), revision))
		revisions = append(revisions, *revision)
	}
	for name, runs := range map[string]int{"prod": historyLimit + 3, "test": 5} {
		ca := &addonsv1.ClusterAddon{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name}}
		ca.Spec.Stacks = []addonsv1.StackRevision{{Name: s.Name, Revision: revisions[runs].Name}}
		must.Succeed(t, r.Client.Create(t.Context(), ca))
	}
	must.Succeed(t, (revisionHistory{r}).trimHistory(t.Context(), s, revisions))
	left := &appsv1.ControllerRevisionList{}
	must.Succeed(t, r.Client.List(t.Context(), left))
	for i, want := range map[int]bool{0: true, 5: true, historyLimit + 1: true, historyLimit + 2: false, historyLimit + 3: true, historyLimit + 4: true} {
		if has := slices.ContainsFunc(left.Items, func(is appsv1.ControllerRevision) bool { return is.Name == revisions[i].Name }); has != want {
			t.Errorf("revision %d is there: %t", i, has)
		}
	}
}
