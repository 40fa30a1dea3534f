// SPDX-License-Identifier: Apache-2.0

package candidate_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/assignment/candidate"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/stacks"
)

// TestStacksAreReadOnce reads stacks again when one of them changes, and what a revision keeps once.
func TestStacksAreReadOnce(t *testing.T) {
	platform := addonsv1.AddonStack{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "platform", UID: "platform", ResourceVersion: "1"}, Spec: having("web")}
	revision := func(name string, number int64) appsv1.ControllerRevision {
		r := stacks.Revision(t, name, platform.Spec)
		r.Namespace, r.UID, r.ResourceVersion, r.Revision = "team", types.UID(name), name, number
		r.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(&platform, addonsv1.GroupVersion.WithKind("AddonStack"))}
		return r
	}
	revisions := []appsv1.ControllerRevision{revision("platform-1", 1)}
	var snapshots candidate.Snapshots
	read := func() candidate.Stack {
		t.Helper()
		all, err := snapshots.Read("team", []addonsv1.AddonStack{*platform.DeepCopy()}, revisions)
		must.Succeed(t, err)
		must.Len(t, 1, all, "the candidates")
		return all[0]
	}
	first := read()
	isSame := func(c candidate.Stack) bool { return &c.Spec.Addons[0] == &first.Spec.Addons[0] }
	if !isSame(read()) {
		t.Error("an unchanged stack was read again")
	}
	platform.ResourceVersion, platform.Annotations = "2", map[string]string{"cluster.x-k8s.io/paused": ""}
	platform.Spec.DeletionPolicy = addonsv1.DeletionPolicyOrphan
	if c := read(); !c.Paused || c.Spec.DeletionPolicy != addonsv1.DeletionPolicyOrphan || !isSame(c) {
		t.Errorf("a changed stack is as it was: paused %t, %s", c.Paused, c.Spec.DeletionPolicy)
	}
	platform.Spec.Addons[0].Namespace = "other"
	revisions = append(revisions, revision("platform-2", 2))
	if c := read(); isSame(c) || c.Revision != "platform-2" || c.Spec.Addons[0].Namespace != "other" {
		t.Errorf("a new revision isn't in force: %s, %v", c.Revision, c.Spec.Addons)
	}
}
