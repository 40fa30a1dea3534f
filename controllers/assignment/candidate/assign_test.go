// SPDX-License-Identifier: Apache-2.0

package candidate_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/assignment/candidate"
	"github.com/cluster-chandler/chandler/internal/member"
	"github.com/cluster-chandler/chandler/internal/stack"
)

func selecting(selector *metav1.LabelSelector) addonsv1.AddonStackSpec {
	return addonsv1.AddonStackSpec{ClusterSelector: selector}
}

func written(selector *metav1.LabelSelector) *addonsv1.AddonStackSpec {
	return ptr.To(selecting(selector))
}

func TestAssign(t *testing.T) {
	everyone := &metav1.LabelSelector{}
	nobody := &metav1.LabelSelector{MatchLabels: map[string]string{"env": "nowhere"}}
	broken := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "env", Operator: "Near"}}}
	cases := map[string]struct {
		reason     string
		candidates []candidate.Stack
		assigned   []addonsv1.StackRevision
		want       []addonsv1.StackRevision
	}{
		"selected stacks": {
			candidates: []candidate.Stack{{Name: "a", Spec: selecting(everyone), Revision: "a-1"}, {Name: "b", Spec: selecting(everyone), Revision: "b-1"}, {Name: "c", Spec: selecting(nobody), Revision: "c-1"}},
			want:       []addonsv1.StackRevision{{Name: "a", Revision: "a-1"}, {Name: "b", Revision: "b-1"}},
		},
		"a stack without a revision is named, as what is installed of it stays": {
			candidates: []candidate.Stack{{Name: "a", Spec: selecting(everyone), Revision: ""}},
			want:       []addonsv1.StackRevision{{Name: "a"}},
		},
		"an assignment outlives a missing revision": {
			reason:     "a lost snapshot must not remove add-ons",
			candidates: []candidate.Stack{{Name: "a", Spec: selecting(everyone), Revision: ""}},
			assigned:   []addonsv1.StackRevision{{Name: "a", Revision: "a-1"}},
			want:       []addonsv1.StackRevision{{Name: "a", Revision: "a-1"}},
		},
		"an assignment outlives a selector that can't be read": {
			reason:     "an invalid edit must not remove add-ons",
			candidates: []candidate.Stack{{Name: "a", Spec: selecting(broken), Revision: "a-2"}},
			assigned:   []addonsv1.StackRevision{{Name: "a", Revision: "a-1"}},
			want:       []addonsv1.StackRevision{{Name: "a", Revision: "a-1"}},
		},
		"a selector that can't be read selects no other cluster": {
			reason:     "or all clusters would wait for it",
			candidates: []candidate.Stack{{Name: "a", Spec: selecting(broken), Revision: "a-2"}},
		},
		"the newest revision is gone, and an older one isn't in force for it": {
			candidates: []candidate.Stack{{Name: "a", Spec: selecting(nobody), Revision: "a-1", Lost: true}},
			assigned:   []addonsv1.StackRevision{{Name: "a", Revision: "a-2"}, {Name: "b"}},
			want:       []addonsv1.StackRevision{{Name: "a", Revision: "a-2"}},
		},
		"nor is it assigned to another cluster": {
			candidates: []candidate.Stack{{Name: "a", Spec: selecting(everyone), Revision: "a-1", Lost: true}},
		},
		"all of its revisions are gone, and nobody knows whether what is written is in force": {
			candidates: []candidate.Stack{{Name: "a", Spec: selecting(nobody), Lost: true}},
			assigned:   []addonsv1.StackRevision{{Name: "a", Revision: "a-2"}},
			want:       []addonsv1.StackRevision{{Name: "a", Revision: "a-2"}},
		},
		"it is named then, as what is installed of it stays": {
			candidates: []candidate.Stack{{Name: "a", Spec: selecting(everyone), Lost: true}, {Name: "b", Spec: selecting(nobody), Lost: true}},
			want:       []addonsv1.StackRevision{{Name: "a"}},
		},
		"add-ons that are to be left behind": {
			candidates: []candidate.Stack{{Name: "a", Spec: addonsv1.AddonStackSpec{ClusterSelector: everyone, DeletionPolicy: addonsv1.DeletionPolicyOrphan}, Revision: "a-1"}},
			want:       []addonsv1.StackRevision{{Name: "a", Revision: "a-1", DeletionPolicy: addonsv1.DeletionPolicyOrphan}},
		},
		"a cluster that is no longer selected": {
			candidates: []candidate.Stack{{Name: "a", Spec: selecting(nobody), Revision: "a-1"}},
			assigned:   []addonsv1.StackRevision{{Name: "a", Revision: "a-1"}},
		},
		"a stack that is deleted": {
			assigned: []addonsv1.StackRevision{{Name: "gone", Revision: "gone-1"}},
		},
		"an assignment outlives its selector while a newer spec that selects isn't in force": {
			reason:     "a Cluster was switched to a class that the stack has in an edit whose source is down",
			candidates: []candidate.Stack{{Name: "a", Spec: selecting(nobody), Revision: "a-1", Written: written(everyone)}},
			assigned:   []addonsv1.StackRevision{{Name: "a", Revision: "a-1"}},
			want:       []addonsv1.StackRevision{{Name: "a", Revision: "a-1"}},
		},
		"a newer spec that doesn't select holds nothing": {
			candidates: []candidate.Stack{{Name: "a", Spec: selecting(nobody), Revision: "a-1", Written: written(nobody)}},
			assigned:   []addonsv1.StackRevision{{Name: "a", Revision: "a-1"}},
		},
		"a newer spec selects nothing before it is in force": {
			reason:     "an edit that is invalid changes no cluster",
			candidates: []candidate.Stack{{Name: "a", Spec: selecting(nobody), Revision: "a-1", Written: written(everyone)}, {Name: "b", Spec: selecting(everyone), Revision: "b-1"}},
			assigned:   []addonsv1.StackRevision{{Name: "b", Revision: "b-1"}},
			want:       []addonsv1.StackRevision{{Name: "b", Revision: "b-1"}},
		},
		"a newer spec is waited for if another stack goes": {
			reason:     "it may be what replaces that one",
			candidates: []candidate.Stack{{Name: "a", Spec: selecting(nobody), Revision: "a-1", Written: written(everyone)}, {Name: "b", Spec: selecting(nobody), Revision: "b-1"}},
			assigned:   []addonsv1.StackRevision{{Name: "b", Revision: "b-1"}},
			want:       []addonsv1.StackRevision{{Name: "a"}},
		},
		"and continues being waited for": {
			candidates: []candidate.Stack{{Name: "a", Spec: selecting(nobody), Revision: "a-1", Written: written(everyone)}},
			assigned:   []addonsv1.StackRevision{{Name: "a"}},
			want:       []addonsv1.StackRevision{{Name: "a"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "one"}}
			if diff := cmp.Diff(tc.want, candidate.Assign(member.OfCluster(cluster), tc.candidates, &addonsv1.ClusterAddon{Spec: addonsv1.ClusterAddonSpec{Stacks: tc.assigned}})); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestTooManyStacks(t *testing.T) {
	var wanted []addonsv1.StackRevision
	for i := range stack.MaxOfCluster + 3 {
		wanted = append(wanted, addonsv1.StackRevision{Name: fmt.Sprintf("s%03d", i)})
	}
	last := wanted[len(wanted)-1]
	kept, left := candidate.Limited(wanted, []addonsv1.StackRevision{last})
	if len(kept) != stack.MaxOfCluster || !slices.Equal(left, []string{"s063", "s064", "s065"}) || kept[len(kept)-1].Name != last.Name {
		t.Errorf("%d are kept, %v left; the last is %v, want the one that is assigned already", len(kept), left, kept[len(kept)-1])
	}
}
