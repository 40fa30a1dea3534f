// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

func TestDeselects(t *testing.T) {
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "prod", Labels: map[string]string{"env": "prod"}}}
	cluster.Spec.Topology.ClassRef.Name = "v2"
	broken := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "env", Operator: "Near"}}}
	for name, tc := range map[string]struct {
		spec addonsv1.AddonStackSpec
		want bool
	}{
		"its class":                       {spec: addonsv1.AddonStackSpec{ClassNames: []string{"v1", "v2"}}},
		"its former class":                {spec: addonsv1.AddonStackSpec{ClassNames: []string{"v1"}}, want: true},
		"its labels":                      {spec: addonsv1.AddonStackSpec{ClusterSelector: &metav1.LabelSelector{MatchLabels: cluster.Labels}}},
		"its labels, not its class":       {spec: addonsv1.AddonStackSpec{ClusterSelector: &metav1.LabelSelector{}, ClassNames: []string{"v1"}}, want: true},
		"a selector that nobody can read": {spec: addonsv1.AddonStackSpec{ClusterSelector: broken}},
	} {
		if got := deselects(&tc.spec, cluster); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}

func TestLagsBeginAnew(t *testing.T) {
	l, one, now := newLags(), client.ObjectKey{Name: "one"}, time.Unix(1000, 0)
	l.update(one, []string{"a"}, now)
	got := l.update(one, []string{"a", "b"}, now.Add(time.Second))
	if diff := cmp.Diff(map[string]time.Time{"a": now, "b": now.Add(time.Second)}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	l.update(one, []string{"b"}, now.Add(2*time.Second))
	if got := l.update(one, []string{"a"}, now.Add(3*time.Second)); !got["a"].Equal(now.Add(3 * time.Second)) {
		t.Errorf("a is behind since %s, though it wasn't in between", got["a"])
	}
	if l.forget(one); len(l.since) != 0 {
		t.Errorf("left in memory: %v", l.since)
	}
}
