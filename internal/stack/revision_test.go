// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

func TestSnapshotKeepsTheSpec(t *testing.T) {
	s := &addonsv1.AddonStack{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "platform", UID: "1", Labels: map[string]string{clusterv1.WatchLabel: "a"}},
		Spec: addonsv1.AddonStackSpec{
			ClassNames: []string{"v1"},
			Addons:     []addonsv1.Addon{{Name: "web", Chart: addonsv1.ChartSource{Path: "web"}, ValuesTemplate: "a: 1"}},
		},
	}
	revision, err := Snapshot(s, 7)
	if err != nil {
		t.Fatal(err)
	}
	spec, err := SpecOf(revision)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&s.Spec, spec); diff != "" {
		t.Errorf("the spec came back otherwise:\n%s", diff)
	}
	if revision.Labels[clusterv1.WatchLabel] != "a" {
		t.Error("the watch label was not carried over")
	}

	again, err := Snapshot(s.DeepCopy(), 8)
	if err != nil || again.Name != revision.Name {
		t.Errorf("an equal spec got another name: %s, %s (%v)", revision.Name, again.Name, err)
	}
	s.Spec.Addons[0].Name = "site"
	other, err := Snapshot(s, 8)
	if err != nil || other.Name == revision.Name {
		t.Errorf("another spec got the same name: %s (%v)", other.Name, err)
	}
}

func TestOwnRevisionsComeNewestFirst(t *testing.T) {
	s := &addonsv1.AddonStack{ObjectMeta: metav1.ObjectMeta{Name: "platform", UID: "1"}}
	owned := func(name string, by types.UID, number int64) appsv1.ControllerRevision {
		return appsv1.ControllerRevision{Revision: number, ObjectMeta: metav1.ObjectMeta{
			Name: name, OwnerReferences: []metav1.OwnerReference{{UID: by, Controller: ptr.To(true)}},
		}}
	}
	own := OwnRevisions(s, []appsv1.ControllerRevision{owned("old", "1", 1), owned("foreign", "2", 9), owned("new", "1", 3)})
	if len(own) != 2 || own[0].Name != "new" || own[1].Name != "old" {
		t.Errorf("OwnRevisions() = %v", own)
	}
}
