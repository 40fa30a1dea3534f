// SPDX-License-Identifier: Apache-2.0

package workload_test

import (
	"cmp"
	"fmt"
	"net/http"
	"reflect"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cluster-api/util/conditions"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/workload"
	"github.com/cluster-chandler/chandler/fleet"
	"github.com/cluster-chandler/chandler/test/connection"
)

// Add-ons that are installed on one cluster aren't looked for on another. Each connection is asked once. Another reconcile
// changes nothing, before it has asked and after that.
func TestClusterIsTheSame(t *testing.T) {
	installed := func(ca *addonsv1.ClusterAddon) {
		ca.Status.ClusterUID, ca.Status.Addons = "previous", []addonsv1.AddonStatus{{Name: "web", Revision: 1}}
	}
	for name, tc := range map[string]struct {
		answer int    // the HTTP status
		says   string // the UID; "this" if it is empty
		change func(*addonsv1.ClusterAddon)
		same   bool
		noted  string
		fails  bool
	}{
		"it is another one":             {http.StatusOK, "", installed, false, "previous", false},
		"it is the same":                {http.StatusOK, "", func(ca *addonsv1.ClusterAddon) { installed(ca); ca.Status.ClusterUID = "this" }, true, "this", false},
		"it is the first":               {http.StatusOK, "", func(*addonsv1.ClusterAddon) {}, true, "this", false},
		"it was the first's version":    {http.StatusOK, "", func(ca *addonsv1.ClusterAddon) { installed(ca); ca.Status.ClusterUID = "" }, true, "this", false},
		"nothing is installed":          {http.StatusOK, "", func(ca *addonsv1.ClusterAddon) { installed(ca); ca.Status.Addons[0].Revision = 0 }, true, "this", false},
		"the status is from a backup":   {http.StatusOK, "", func(ca *addonsv1.ClusterAddon) { installed(ca); ca.Status.ObservedUID = "other" }, true, "this", false},
		"it says something else":        {http.StatusOK, "two words", installed, true, "previous", false},
		"the kubeconfig mayn't ask":     {http.StatusForbidden, "", installed, true, "previous", false},
		"it has no such namespace":      {http.StatusNotFound, "", installed, true, "previous", false},
		"the cluster doesn't answer it": {http.StatusInternalServerError, "", installed, false, "previous", true},
		"it starts, and has nothing":    {http.StatusInternalServerError, "", func(*addonsv1.ClusterAddon) {}, true, "", false},
		"it starts, and was another": {http.StatusInternalServerError, "", func(ca *addonsv1.ClusterAddon) {
			installed(ca)
			conditions.Set(ca, metav1.Condition{Type: addonsv1.ClusterReachableCondition, Status: metav1.ConditionFalse, Reason: addonsv1.AnotherClusterReason})
		}, false, "previous", true},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			clusters := connection.Fleet(t, func(w http.ResponseWriter, _ *http.Request) {
				asked++
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(tc.answer)
				_, _ = fmt.Fprintf(w, `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"kube-system","uid":%q}}`, cmp.Or(tc.says, "this"))
			})
			ca := &addonsv1.ClusterAddon{ObjectMeta: metav1.ObjectMeta{UID: "own"}}
			ca.Status.ObservedUID = "own"
			tc.change(ca)
			known, cluster := &workload.Identity{}, workload.Cluster{Name: "ns/prod"}
			long := metav1.NewTime(time.Unix(1e9, 0))
			reachable := func() *metav1.Condition { return conditions.Get(ca, addonsv1.ClusterReachableCondition) }
			var told *metav1.Condition
			for range 2 {
				cluster.Conn = workload.Reach(clusters, ca, cluster.Name)
				if is := reachable(); told != nil && !reflect.DeepEqual(is, told) {
					t.Errorf("before it is asked: %+v", is)
				}
				if same, err := known.IsSame(t.Context(), clusters, ca, cluster); same != tc.same || (err != nil) != tc.fails || string(ca.Status.ClusterUID) != tc.noted {
					t.Errorf("same %t, noted %s: %v", same, ca.Status.ClusterUID, err)
				}
				if is := reachable(); told != nil && !reflect.DeepEqual(is, told) {
					t.Errorf("once it was asked: %+v", is)
				}
				reachable().LastTransitionTime = long
				told = reachable().DeepCopy()
			}
			if unknown := conditions.Get(ca, addonsv1.AddonsReadyCondition); tc.fails != (unknown != nil && unknown.Status == metav1.ConditionUnknown) {
				t.Errorf("told: %+v", unknown)
			}
			if tc.fails {
				return
			}
			if isTold := told.Reason == addonsv1.AnotherClusterReason; isTold == tc.same || conditions.IsTrue(ca, told.Type) != tc.same {
				t.Errorf("told: %+v", told)
			}
			ca.Status.ClusterUID = "this"
			if same, err := known.IsSame(t.Context(), clusters, ca, cluster); !same || err != nil || conditions.GetReason(ca, told.Type) != fleet.ReasonConnected || !conditions.IsTrue(ca, told.Type) {
				t.Errorf("it is the right one: %v, %+v", err, ca.Status.Conditions)
			}
			if tc.answer == http.StatusOK && tc.says == "" && asked != 1 {
				t.Errorf("asked %d times", asked)
			}
		})
	}
}

// A restart doesn't take back that it is another cluster: until it is asked again, nothing says that it is otherwise now.
func TestAnotherClusterOutlivesARestart(t *testing.T) {
	ca := &addonsv1.ClusterAddon{}
	conditions.Set(ca, metav1.Condition{Type: addonsv1.ClusterReachableCondition, Status: metav1.ConditionFalse, Reason: addonsv1.AnotherClusterReason})
	before := ca.DeepCopy()
	clusters := connection.Fleet(t, func(http.ResponseWriter, *http.Request) {})
	if conn := workload.Reach(clusters, ca, "ns/not-known-yet"); conn != nil || !reflect.DeepEqual(ca, before) {
		t.Errorf("%v, %+v", conn, ca.Status.Conditions)
	}
}
