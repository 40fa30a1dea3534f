// SPDX-License-Identifier: Apache-2.0

package hooks_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	hooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/cost"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/webhooks/hooks"
)

const prefix = "/hooks.runtime.cluster.x-k8s.io/v1alpha1/"

// paths of all hooks that are held.
var paths = []string{
	prefix + "beforeclusterupgrade/before-cluster-upgrade", prefix + "beforecontrolplaneupgrade/before-control-plane-upgrade",
	prefix + "aftercontrolplaneupgrade/after-control-plane-upgrade", prefix + "afterclusterupgrade/after-cluster-upgrade",
	prefix + "beforeclusterdelete/before-cluster-delete",
}

// stored is a management cluster with one ClusterAddon, team/prod, which waits for everything.
type stored struct{ client.Client }

func (stored) Get(_ context.Context, _ client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	ca := obj.(*addonsv1.ClusterAddon)
	ca.Namespace, ca.Name, ca.Generation = "team", "prod", 1
	ca.Spec.ClusterName = "prod"
	ca.Status.GatesUpgrades, ca.Status.GatesDeletion = new(true), new(true)
	return nil
}

func (stored) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	pi := addonsv1.ProviderInstance{ObjectMeta: metav1.ObjectMeta{Namespace: "system", Name: "chandler"}}
	pi.Spec.Claim = addonsv1.ScopeClaiming
	pi.Status.Grant = &addonsv1.ScopeGrant{State: addonsv1.GrantGranted}
	list.(*addonsv1.ProviderInstanceList).Items = []addonsv1.ProviderInstance{pi}
	return nil
}

func newHandler() http.Handler {
	server := webhook.NewServer(webhook.Options{})
	answers := &hooks.Server{Client: stored{}, Instances: stored{}, FailurePolicy: hooksv1.FailurePolicyFail, Clock: clocktesting.NewFakePassiveClock(time.Unix(1e9, 0))}
	answers.Register(server)
	return server.WebhookMux()
}

func ask(handler http.Handler, path string, body []byte) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, httptest.NewRequest(http.MethodPost, path, bytes.NewReader(body)))
	return w
}

// Of a request only what is used is decoded, so no list in it takes memory.
func TestMemoryOfRequests(t *testing.T) {
	handler := newHandler()
	for name, begin := range map[string]string{
		"managed fields": `{"cluster":{"metadata":{"managedFields":[`, "owners": `{"cluster":{"metadata":{"ownerReferences":[`,
		"machine pools": `{"cluster":{"spec":{"topology":{"workers":{"machinePools":[`,
	} {
		t.Run(name, func(t *testing.T) {
			end := "{}]" + strings.Repeat("}", strings.Count(begin, "{"))
			body := []byte(begin + strings.Repeat("{},", 16<<20/3) + end)
			var w *httptest.ResponseRecorder
			cost.Of(func() { w = ask(handler, paths[4], body) }).Expect(t, 10*time.Second, 64<<20)
			if w.Code != http.StatusOK {
				t.Errorf("%d: %s", w.Code, w.Body)
			}
		})
	}
}

// The annotations that are read are those of the API, and a Cluster that moves is never held.
func TestAnnotationsOfRequests(t *testing.T) {
	handler := newHandler()
	for annotation, path := range map[string]string{clusterctlv1.DeleteForMoveAnnotation: paths[4], addonsv1.SkipGatesAnnotation: paths[0]} {
		for _, set := range []bool{false, true} {
			c := map[string]any{"namespace": "team", "name": "prod", "generation": 1}
			if set {
				c["annotations"] = map[string]string{annotation: "v1.36.0"}
			}
			body, err := json.Marshal(map[string]any{"cluster": map[string]any{"metadata": c, "spec": map[string]any{"topology": map[string]any{"version": "v1.36.0"}}}})
			must.Succeed(t, err)
			w := ask(handler, path, body)
			answer := &hooksv1.BeforeClusterUpgradeResponse{}
			must.Succeed(t, json.Unmarshal(w.Body.Bytes(), answer))
			if held := answer.RetryAfterSeconds > 0; held == set {
				t.Errorf("%s set: %t, held: %t: %s", annotation, set, held, w.Body)
			}
		}
	}
}

// FuzzRequests sends anything to a hook. The answer is a status of HTTP, and takes little memory.
func FuzzRequests(f *testing.F) {
	handler := newHandler()
	f.Add(0, []byte(`{"cluster":{"metadata":{"namespace":"team","name":"prod"},"spec":{"topology":{"version":"v1.36.0"}}},"toKubernetesVersion":"v1.36.0"}`))
	f.Fuzz(func(t *testing.T, hook int, body []byte) {
		if len(body) > 1<<20 {
			t.Skip("the server lets nothing larger in")
		}
		path := paths[uint(hook)%uint(len(paths))]
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		w := ask(handler, path, body)
		runtime.ReadMemStats(&after)
		if w.Code != http.StatusOK && w.Code != http.StatusBadRequest {
			t.Errorf("%d: %s", w.Code, w.Body)
		}
		if took := after.TotalAlloc - before.TotalAlloc; took > uint64(1<<20+16*len(body)) {
			t.Errorf("%d bytes take %d bytes of memory", len(body), took)
		}
	})
}
