// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"context"
	"errors"
	"net/http"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	testingclock "k8s.io/utils/clock/testing"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/management"
	"github.com/cluster-chandler/chandler/internal/member"
	"github.com/cluster-chandler/chandler/internal/source"
	"github.com/cluster-chandler/chandler/test/connection"
)

// An add-on is in the status before anything of it is in its cluster. A manager that dies in
// between would else not know that this ClusterAddon has run it.
func TestNothingIsInstalledBeforeTheStatusTellsOfIt(t *testing.T) {
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "team", Name: name} }
	refusal, written := errors.New("refused"), []addonsv1.AddonStatus(nil)
	hub := fake.NewClientBuilder().WithScheme(hubScheme(t)).WithObjects(
		&addonsv1.AddonStack{ObjectMeta: meta("platform")},
		&appsv1.ControllerRevision{ObjectMeta: meta("platform-1"), Data: runtime.RawExtension{Raw: []byte(`{"clusterSelector":{},"addons":[{"name":"web"}]}`)}},
	).WithInterceptorFuncs(interceptor.Funcs{
		SubResourcePatch: func(_ context.Context, _ client.Client, _ string, o client.Object, _ client.Patch, _ ...client.SubResourcePatchOption) error {
			written = o.(*addonsv1.ClusterAddon).Status.Addons
			return refusal
		},
	}).Build()
	ca, cluster := &addonsv1.ClusterAddon{}, &clusterv1.Cluster{}
	ca.Namespace, ca.Name, ca.UID, cluster.Namespace, cluster.Name = "team", "prod", "own", "team", "prod"
	ca.Spec.Stacks = []addonsv1.StackRevision{{Name: "platform", Revision: "platform-1"}}
	conn := connection.To(t, func(w http.ResponseWriter, r *http.Request) {
		if w.WriteHeader(http.StatusNotFound); r.URL.Path != "/api/v1/namespaces/kube-system" { // which cluster it is
			t.Errorf("%s %s was asked", r.Method, r.URL.Path)
		}
	})
	sources, err := source.New(source.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := &Reconciler{
		Client: hub, statuses: management.Statuses{Client: hub}, Clock: testingclock.NewFakePassiveClock(metav1.Now().Time),
		Sources: sources, records: recordsOf{}, lanes: newLanes(2),
	}
	q := &clusterRun{Reconciler: r, ca: ca, cluster: member.OfCluster(cluster), stored: ca.DeepCopy(), name: "team/prod", conn: conn, memory: newMemory()}
	if _, err := r.deliver(t.Context(), q); !errors.Is(err, refusal) {
		t.Errorf("the reconcile continues: %v", err)
	}
	if len(written) != 1 || written[0].Name != "web" || written[0].Phase != addonsv1.AddonPending {
		t.Errorf("the status was to say %+v", written)
	}
	if c := conditions.Get(ca, addonsv1.AddonsReadyCondition); c != nil {
		t.Errorf("something was tried: %+v", c)
	}
}
