// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testingclock "k8s.io/utils/clock/testing"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/management"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/member"
	"github.com/cluster-chandler/chandler/internal/source"
	"github.com/cluster-chandler/chandler/test/connection"
)

// oneStack is a management cluster with one stack, in which no status can be written.
type oneStack struct {
	client.Client
	spec    addonsv1.AddonStackSpec
	refusal error
	written []addonsv1.AddonStatus
}

func (c *oneStack) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	into.SetNamespace(key.Namespace)
	into.SetName(key.Name)
	switch o := into.(type) {
	case *addonsv1.AddonStack:
		o.Spec = c.spec
	case *appsv1.ControllerRevision:
		raw, err := json.Marshal(c.spec)
		o.Data.Raw = raw
		return err
	}
	return nil
}

func (c *oneStack) Status() client.SubResourceWriter { return refusingWriter{cluster: c} }

type refusingWriter struct {
	client.SubResourceWriter
	cluster *oneStack
}

func (w refusingWriter) Patch(_ context.Context, o client.Object, _ client.Patch, _ ...client.SubResourcePatchOption) error {
	w.cluster.written = o.(*addonsv1.ClusterAddon).Status.Addons
	return w.cluster.refusal
}

// noRecords are those of a cluster on which nothing is installed.
type noRecords struct{}

func (noRecords) Of(multicluster.ClusterName) (map[deliver.Release]deliver.Summary, bool) {
	return nil, true
}
func (noRecords) Failure(multicluster.ClusterName) error { return nil }

// An add-on is in the status before anything of it is in its cluster. A manager that dies in
// between would else not know that this ClusterAddon has run it.
func TestNothingIsInstalledBeforeTheStatusTellsOfIt(t *testing.T) {
	hub := &oneStack{refusal: errors.New("refused"), spec: addonsv1.AddonStackSpec{
		ClusterSelector: &metav1.LabelSelector{}, Addons: []addonsv1.Addon{{Name: "web"}},
	}}
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
		Sources: sources, records: noRecords{}, lanes: newLanes(2),
	}
	q := &clusterRun{Reconciler: r, ca: ca, cluster: member.OfCluster(cluster), stored: ca.DeepCopy(), workload: &workload{name: "team/prod", conn: conn}, memory: newMemory()}
	if _, err := r.deliver(t.Context(), q); !errors.Is(err, hub.refusal) {
		t.Errorf("the reconcile continues: %v", err)
	}
	if len(hub.written) != 1 || hub.written[0].Name != "web" || hub.written[0].Phase != addonsv1.AddonPending {
		t.Errorf("the status was to say %+v", hub.written)
	}
	if c := conditions.Get(ca, addonsv1.AddonsReadyCondition); c != nil {
		t.Errorf("something was tried: %+v", c)
	}
}
