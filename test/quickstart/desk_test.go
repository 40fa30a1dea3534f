// SPDX-License-Identifier: Apache-2.0

package quickstart

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	helmrepo "helm.sh/helm/v4/pkg/repo/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/kubeconfig"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-chandler/chandler/test/apiserver"
	"github.com/cluster-chandler/chandler/test/controlplane"
	"github.com/cluster-chandler/chandler/test/manager"
	"github.com/cluster-chandler/chandler/test/must"
)

// version is the one that the page shows.
const version = "v0.1.0"

// desk is where somebody sits who follows the page: a folder, and what is around in the place of Docker.
type desk struct {
	t                 *testing.T
	dir, kubectl      string
	management        *controlplane.ControlPlane
	workload          map[string]*controlplane.ControlPlane // by the name of the Cluster
	client            client.Client                         // of the management cluster
	fromHere, asShown *strings.Replacer                     // put the repository here in the place of those of the page, and back
	instead, before   map[string]func()                     // by the begin of a command, and by the command
	manager           *manager.Process
}

// start starts control planes for management and for Clusters of these names, and a Helm repository with the charts of a folder.
func start(t *testing.T, charts string, clusters ...string) *desk {
	t.Helper()
	d := &desk{t: t, dir: t.TempDir(), kubectl: kubectl(t), workload: map[string]*controlplane.ControlPlane{}}
	crds, err := apiserver.ClusterAPICRDs(t.Context(), "clusters", "clusterclasses")
	must.Succeed(t, err)
	options := []controlplane.Options{{Name: "management", Workers: true, CRDPaths: crds}}
	for _, name := range clusters {
		options = append(options, controlplane.Options{Name: name, Workers: true, Nodes: 2})
	}
	planes, err := controlplane.StartAll(t.Context(), options...)
	must.Succeed(t, err)
	for _, plane := range planes {
		t.Cleanup(func() { _ = plane.Stop() })
		d.workload[plane.Name()] = plane
	}
	d.management = planes[0]
	if d.client, err = client.New(d.management.Config(), client.Options{Scheme: apiserver.Scheme()}); err != nil {
		t.Fatal(err)
	}
	d.save("management.kubeconfig", string(d.management.Kubeconfig()))
	repositories := d.serve(charts)
	d.fromHere = strings.NewReplacer("{url: https://", "{plainHTTP: true, url: "+repositories)
	d.asShown = strings.NewReplacer(repositories, "https://")
	nothing := func() {} // it is there already, or goes with the test
	d.instead = map[string]func(){
		"kind create cluster": nothing,
		"CLUSTER_TOPOLOGY=true clusterctl init --infrastructure docker": nothing,
		"clusterctl init --addon chandler":                              d.install,
		"clusterctl generate cluster prod-1":                            func() { d.generate("prod-1") },
		"clusterctl get kubeconfig prod-1":                              func() { d.save("prod-1.kubeconfig", string(d.workload["prod-1"].Kubeconfig())) },
		"kind delete cluster":                                           nothing,
	}
	d.before = map[string]func(){"kubectl wait cluster prod-1 --for=condition=ControlPlaneInitialized --timeout=10m": func() { d.provision("prod-1") }}
	return d
}

// serve returns an address below which each path is a Helm repository with the archives of a folder.
func (d *desk) serve(charts string) string {
	d.t.Helper()
	files := http.NewServeMux()
	server := httptest.NewServer(files)
	d.t.Cleanup(server.Close)
	index, err := helmrepo.IndexDirectory(charts, server.URL+"/archives")
	must.Succeed(d.t, err)
	must.Succeed(d.t, index.WriteFile(d.file("index.yaml"), 0o600))
	files.Handle("/archives/", http.StripPrefix("/archives/", http.FileServer(http.Dir(charts))))
	files.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if path.Base(r.URL.Path) != "index.yaml" {
			http.NotFound(w, r)
			return
		}
		index, err := os.ReadFile(d.file("index.yaml"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		_, _ = w.Write(index)
	})
	return server.URL + "/"
}

// generate writes the manifest of a Cluster. Its machines are there already.
func (d *desk) generate(name string) {
	d.save(name+".yaml", `apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: `+name+`, namespace: default}
spec: {clusterNetwork: {serviceDomain: cluster.local}}
`)
}

// provision does what Cluster API does once a control plane is up.
func (d *desk) provision(name string) {
	d.t.Helper()
	cluster := &clusterv1.Cluster{}
	must.Succeed(d.t, d.client.Get(d.t.Context(), client.ObjectKey{Namespace: metav1.NamespaceDefault, Name: name}, cluster))
	must.Succeed(d.t, d.client.Create(d.t.Context(), kubeconfig.GenerateSecret(cluster, d.workload[name].Kubeconfig())))
	cluster.Status.SetTypedPhase(clusterv1.ClusterPhaseProvisioned)
	cluster.Status.Initialization = clusterv1.ClusterInitializationStatus{InfrastructureProvisioned: ptr.To(true), ControlPlaneInitialized: ptr.To(true)}
	cluster.Status.Conditions = []metav1.Condition{{
		Type: clusterv1.ClusterControlPlaneInitializedCondition, Status: metav1.ConditionTrue, LastTransitionTime: metav1.Now(), Reason: clusterv1.ClusterControlPlaneInitializedReason,
	}}
	must.Succeed(d.t, d.client.Status().Update(d.t.Context(), cluster))
}

func (d *desk) file(name string) string { return filepath.Join(d.dir, name) }

func (d *desk) save(name, text string) {
	d.t.Helper()
	must.Succeed(d.t, os.WriteFile(d.file(name), []byte(text), 0o600))
}
