// SPDX-License-Identifier: Apache-2.0

package assignment

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/member"
)

// TestTransfers takes add-on "db" out of stack "from", whose second revision lacks it. The cluster has its first one.
func TestTransfers(t *testing.T) {
	everyone, nobody := &metav1.LabelSelector{}, &metav1.LabelSelector{MatchLabels: map[string]string{"env": "none"}}
	spec := func(selector *metav1.LabelSelector, addons ...string) addonsv1.AddonStackSpec {
		s := addonsv1.AddonStackSpec{ClusterSelector: selector}
		for _, name := range addons {
			s.Addons = append(s.Addons, addonsv1.Addon{Name: name, Chart: addonsv1.ChartSource{Path: name}})
		}
		return s
	}
	revision := func(name string, spec addonsv1.AddonStackSpec) appsv1.ControllerRevision {
		raw, err := json.Marshal(spec)
		if err != nil {
			t.Fatal(err)
		}
		return appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: runtime.RawExtension{Raw: raw}}
	}
	with, without := spec(everyone, "cni", "db"), spec(everyone, "cni")
	from := candidate{name: "from", spec: without, revision: "from-2", revisions: []appsv1.ControllerRevision{revision("from-2", without), revision("from-1", with)}}
	empty, has := spec(everyone), spec(everyone, "db")
	to := candidate{name: "to", spec: empty, revision: "to-1", revisions: []appsv1.ControllerRevision{revision("to-1", empty)}}
	written := func(s addonsv1.AddonStackSpec) candidate {
		c := to
		c.written = &s
		return c
	}
	done := candidate{name: "to", spec: has, revision: "to-2", revisions: []appsv1.ControllerRevision{revision("to-2", has), revision("to-1", empty)}}
	rolling := done
	rolling.steps = &steps{completed: 1, hasTarget: true}
	elsewhere := spec(everyone, "db")
	elsewhere.Addons[0].Namespace = "other"
	for name, tc := range map[string]struct {
		to   candidate
		want string // revision of stack "from"
	}{
		"nobody wants it": {to, "from-2"},
		"it is in the written spec of another stack":    {written(has), "from-1"},
		"that doesn't select the cluster":               {written(spec(nobody, "db")), "from-2"},
		"that has it in another namespace":              {written(elsewhere), "from-2"},
		"the other stack is new":                        {candidate{name: "to", spec: has}, "from-1"},
		"the other stack has it on the cluster":         {done, "from-2"},
		"the other stack's rollout isn't there yet":     {rolling, "from-1"},
		"the other stack is to lose it, and has it yet": {func() candidate { c := done; c.written = &empty; return c }(), "from-2"},
	} {
		t.Run(name, func(t *testing.T) {
			ca := &addonsv1.ClusterAddon{Spec: addonsv1.ClusterAddonSpec{Stacks: []addonsv1.StackRevision{{Name: "from", Revision: "from-1"}, {Name: "to", Revision: "to-1"}}}}
			cluster := member.OfCluster(&clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "prod"}})
			for _, candidates := range [][]candidate{{from, tc.to}, {tc.to, from}} {
				got := map[string]string{}
				for _, s := range assign(cluster, candidates, ca) {
					got[s.Name] = s.Revision
				}
				if diff := cmp.Diff(tc.want, got["from"]); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}
