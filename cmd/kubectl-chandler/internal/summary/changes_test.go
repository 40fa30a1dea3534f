// SPDX-License-Identifier: Apache-2.0

package summary_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/cmd/kubectl-chandler/internal/summary"
	"github.com/cluster-chandler/chandler/internal/observed"
)

// TestChangesOfAFleet has the same change of an add-on once, with its clusters, and the last changes first.
func TestChangesOfAFleet(t *testing.T) {
	start := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(minutes int) metav1.Time { return metav1.NewTime(start.Add(time.Duration(minutes) * time.Minute)) }
	change := func(minutes int, cause addonsv1.ChangeCause, from, to string) addonsv1.AddonChange {
		return addonsv1.AddonChange{Time: at(minutes), Addon: "web", Stack: "platform", Cause: cause, From: from, To: to}
	}
	cluster := func(name string, history ...addonsv1.AddonChange) addonsv1.ClusterAddon {
		return addonsv1.ClusterAddon{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: addonsv1.ClusterAddonStatus{History: history}}
	}
	s := addonsv1.AddonStack{ObjectMeta: metav1.ObjectMeta{Name: "platform"}}
	s.Status.History = []addonsv1.StackChange{{Time: at(10), Cause: addonsv1.ChangeEdited, By: "kubectl-edit", From: "a", To: "b", Versions: "web 1 -> 2"}}
	f := &observed.Fleet{Stacks: []addonsv1.AddonStack{s}, Clusters: []addonsv1.ClusterAddon{
		cluster("one", change(11, addonsv1.ChangeEdited, "1", "2"), change(0, addonsv1.ChangeInstalled, "", "1")),
		cluster("two", change(14, addonsv1.ChangeRepaired, "2", "2"), change(13, addonsv1.ChangeEdited, "1", "2")),
		cluster("six", change(12, addonsv1.ChangeEdited, "1", "2"), change(9, addonsv1.ChangeRemoved, "1", "")),
	}}
	var got []string
	changes := summary.ChangesOf(f, start.Add(5*time.Minute)).Changes
	for _, c := range changes {
		words, _, _ := strings.Cut(c.Text(), ",")
		got = append(got, words+" "+strings.Join(c.Clusters, " "))
	}
	want := []string{
		"platform/web 2: Repaired two", "platform/web 1 -> 2: Edited one two six", "platform: Edited by kubectl-edit ", "platform/web 1: Removed six",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%q", got)
	}
	if edited := changes[1]; !edited.Time.Time.Equal(at(13).Time) {
		t.Errorf("%+v", edited)
	}
}
