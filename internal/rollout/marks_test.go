// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/rollout"
)

// Without marks, the newest revision but for the last one that was made without a rollout counts as completed.
func TestCompletedByMarks(t *testing.T) {
	const edited, followed = addonsv1.RolloutCauseAnnotation + "=Edited", addonsv1.RolloutCauseAnnotation + "=Followed"
	const started, completed = addonsv1.RolloutStartedAnnotation + "=2026-01-01T00:00:00Z", addonsv1.RolloutCompletedAnnotation + "=2026-01-01T00:00:00Z"
	for name, tc := range map[string]struct {
		revisions []string // the annotations of each, the newest first
		want      int
	}{
		"none":                           {nil, -1},
		"the first":                      {[]string{edited}, -1},
		"no rollout yet":                 {[]string{"", "", ""}, 1},
		"an edit with the first rollout": {[]string{edited, "", ""}, 1},
		"a version that came with the first rollout": {[]string{followed, ""}, 1},
		"the first edit was replaced at once":        {[]string{edited, edited, "", ""}, 2},
		"a rollout from the start, and an edit":      {[]string{edited, edited}, -1},
		"a rollout from the start, and a version":    {[]string{followed, edited}, -1},
		"the first has started":                      {[]string{edited, edited + " " + started}, -1},
		"the first is completed":                     {[]string{edited, edited, edited + " " + completed}, 2},
		"a previous program made them":               {[]string{"", started, completed}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			var revisions []appsv1.ControllerRevision
			for i, marks := range tc.revisions {
				r := appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(i)}}
				for mark := range strings.FieldsSeq(marks) {
					annotation, value, _ := strings.Cut(mark, "=")
					metav1.SetMetaDataAnnotation(&r.ObjectMeta, annotation, value)
				}
				revisions = append(revisions, r)
			}
			if got := rollout.Completed(rollout.Revisions(revisions)); got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
		})
	}
}
