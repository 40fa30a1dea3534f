// SPDX-License-Identifier: Apache-2.0

package assignment

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/member"
	"github.com/cluster-chandler/chandler/internal/stack"
	"github.com/cluster-chandler/chandler/test/must"
)

func selecting(selector *metav1.LabelSelector) addonsv1.AddonStackSpec {
	return addonsv1.AddonStackSpec{ClusterSelector: selector}
}

func written(selector *metav1.LabelSelector) *addonsv1.AddonStackSpec {
	return ptr.To(selecting(selector))
}

// kept returns the revision of a name that keeps a spec.
func kept(t *testing.T, name string, spec addonsv1.AddonStackSpec) appsv1.ControllerRevision {
	t.Helper()
	raw, err := json.Marshal(spec)
	must.Succeed(t, err)
	return appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: runtime.RawExtension{Raw: raw}}
}

func TestAssign(t *testing.T) {
	everyone := &metav1.LabelSelector{}
	nobody := &metav1.LabelSelector{MatchLabels: map[string]string{"env": "nowhere"}}
	broken := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "env", Operator: "Near"}}}
	cases := map[string]struct {
		reason     string
		candidates []candidate
		assigned   []addonsv1.StackRevision
		want       []addonsv1.StackRevision
	}{
		"selected stacks": {
			candidates: []candidate{{name: "a", spec: selecting(everyone), revision: "a-1"}, {name: "b", spec: selecting(everyone), revision: "b-1"}, {name: "c", spec: selecting(nobody), revision: "c-1"}},
			want:       []addonsv1.StackRevision{{Name: "a", Revision: "a-1"}, {Name: "b", Revision: "b-1"}},
		},
		"a stack without a revision is named, as what is installed of it stays": {
			candidates: []candidate{{name: "a", spec: selecting(everyone), revision: ""}},
			want:       []addonsv1.StackRevision{{Name: "a"}},
		},
		"an assignment outlives a missing revision": {
			reason:     "a lost snapshot must not remove add-ons",
			candidates: []candidate{{name: "a", spec: selecting(everyone), revision: ""}},
			assigned:   []addonsv1.StackRevision{{Name: "a", Revision: "a-1"}},
			want:       []addonsv1.StackRevision{{Name: "a", Revision: "a-1"}},
		},
		"an assignment outlives a selector that can't be read": {
			reason:     "an invalid edit must not remove add-ons",
			candidates: []candidate{{name: "a", spec: selecting(broken), revision: "a-2"}},
			assigned:   []addonsv1.StackRevision{{Name: "a", Revision: "a-1"}},
			want:       []addonsv1.StackRevision{{Name: "a", Revision: "a-1"}},
		},
		"a selector that can't be read selects no other cluster": {
			reason:     "or all clusters would wait for it",
			candidates: []candidate{{name: "a", spec: selecting(broken), revision: "a-2"}},
		},
		"the newest revision is gone, and an older one isn't in force for it": {
			candidates: []candidate{{name: "a", spec: selecting(nobody), revision: "a-1", lost: true}},
			assigned:   []addonsv1.StackRevision{{Name: "a", Revision: "a-2"}, {Name: "b"}},
			want:       []addonsv1.StackRevision{{Name: "a", Revision: "a-2"}},
		},
		"nor is it assigned to another cluster": {
			candidates: []candidate{{name: "a", spec: selecting(everyone), revision: "a-1", lost: true}},
		},
		"all of its revisions are gone, and nobody knows whether what is written is in force": {
			candidates: []candidate{{name: "a", spec: selecting(nobody), lost: true}},
			assigned:   []addonsv1.StackRevision{{Name: "a", Revision: "a-2"}},
			want:       []addonsv1.StackRevision{{Name: "a", Revision: "a-2"}},
		},
		"it is named then, as what is installed of it stays": {
			candidates: []candidate{{name: "a", spec: selecting(everyone), lost: true}, {name: "b", spec: selecting(nobody), lost: true}},
			want:       []addonsv1.StackRevision{{Name: "a"}},
		},
		"add-ons that are to be left behind": {
			candidates: []candidate{{name: "a", spec: addonsv1.AddonStackSpec{ClusterSelector: everyone, DeletionPolicy: addonsv1.DeletionPolicyOrphan}, revision: "a-1"}},
			want:       []addonsv1.StackRevision{{Name: "a", Revision: "a-1", DeletionPolicy: addonsv1.DeletionPolicyOrphan}},
		},
		"a cluster that is no longer selected": {
			candidates: []candidate{{name: "a", spec: selecting(nobody), revision: "a-1"}},
			assigned:   []addonsv1.StackRevision{{Name: "a", Revision: "a-1"}},
		},
		"a stack that is deleted": {
			assigned: []addonsv1.StackRevision{{Name: "gone", Revision: "gone-1"}},
		},
		"an assignment outlives its selector while a newer spec that selects isn't in force": {
			reason:     "a Cluster was switched to a class that the stack has in an edit whose source is down",
			candidates: []candidate{{name: "a", spec: selecting(nobody), revision: "a-1", written: written(everyone)}},
			assigned:   []addonsv1.StackRevision{{Name: "a", Revision: "a-1"}},
			want:       []addonsv1.StackRevision{{Name: "a", Revision: "a-1"}},
		},
		"a newer spec that doesn't select holds nothing": {
			candidates: []candidate{{name: "a", spec: selecting(nobody), revision: "a-1", written: written(nobody)}},
			assigned:   []addonsv1.StackRevision{{Name: "a", Revision: "a-1"}},
		},
		"a newer spec selects nothing before it is in force": {
			reason:     "an edit that is invalid changes no cluster",
			candidates: []candidate{{name: "a", spec: selecting(nobody), revision: "a-1", written: written(everyone)}, {name: "b", spec: selecting(everyone), revision: "b-1"}},
			assigned:   []addonsv1.StackRevision{{Name: "b", Revision: "b-1"}},
			want:       []addonsv1.StackRevision{{Name: "b", Revision: "b-1"}},
		},
		"a newer spec is waited for if another stack goes": {
			reason:     "it may be what replaces that one",
			candidates: []candidate{{name: "a", spec: selecting(nobody), revision: "a-1", written: written(everyone)}, {name: "b", spec: selecting(nobody), revision: "b-1"}},
			assigned:   []addonsv1.StackRevision{{Name: "b", Revision: "b-1"}},
			want:       []addonsv1.StackRevision{{Name: "a"}},
		},
		"and continues being waited for": {
			candidates: []candidate{{name: "a", spec: selecting(nobody), revision: "a-1", written: written(everyone)}},
			assigned:   []addonsv1.StackRevision{{Name: "a"}},
			want:       []addonsv1.StackRevision{{Name: "a"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "one"}}
			if diff := cmp.Diff(tc.want, assign(member.OfCluster(cluster), tc.candidates, &addonsv1.ClusterAddon{Spec: addonsv1.ClusterAddonSpec{Stacks: tc.assigned}})); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestShapeIsStable(t *testing.T) {
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{
		Namespace: "team", Name: "one", UID: "1", Labels: map[string]string{clusterv1.WatchLabel: "a"},
	}}
	ca := &addonsv1.ClusterAddon{}
	shape(ca, member.OfCluster(cluster), nil)
	if ca.Labels[clusterv1.WatchLabel] != "a" || ca.Spec.ClusterName != "one" || ca.OwnerReferences[0].UID != "1" {
		t.Errorf("shape() = %v", ca)
	}
	again := ca.DeepCopy()
	shape(again, member.OfCluster(cluster), nil)
	if diff := cmp.Diff(ca, again); diff != "" {
		t.Errorf("a second time makes a difference:\n%s", diff)
	}
	delete(cluster.Labels, clusterv1.WatchLabel)
	shape(again, member.OfCluster(cluster), nil)
	if _, ok := again.Labels[clusterv1.WatchLabel]; ok {
		t.Error("the watch label stays though the Cluster has lost it")
	}
}

func TestTooManyStacks(t *testing.T) {
	var wanted []addonsv1.StackRevision
	for i := range stack.MaxOfCluster + 3 {
		wanted = append(wanted, addonsv1.StackRevision{Name: fmt.Sprintf("s%03d", i)})
	}
	last := wanted[len(wanted)-1]
	kept, left := limited(wanted, []addonsv1.StackRevision{last})
	if len(kept) != stack.MaxOfCluster || !slices.Equal(left, []string{"s063", "s064", "s065"}) || kept[len(kept)-1].Name != last.Name {
		t.Errorf("%d are kept, %v left; the last is %v, want the one that is assigned already", len(kept), left, kept[len(kept)-1])
	}
}
