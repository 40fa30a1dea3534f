// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-chandler/chandler/fleet/fleettest"
	"github.com/cluster-chandler/chandler/test/gobuild"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/process"
	"github.com/cluster-chandler/chandler/test/wait"
)

// examples is a module of its own: what is in it, anybody can write.
const examples = "../../examples"

// Who imports the library gets nothing of what Chandler is made of beside it.
func TestWhatImportersGet(t *testing.T) {
	command := exec.CommandContext(t.Context(), "go", "list", "-deps", "./...")
	command.Dir, command.Env = examples, append(os.Environ(), "GOWORK=off")
	out, err := command.Output()
	must.Succeed(t, err)
	packages := strings.Fields(string(out))
	if len(packages) < 100 {
		t.Fatalf("only %d packages", len(packages))
	}
	for _, pkg := range packages {
		for _, excluded := range []string{"helm.sh/", "sigs.k8s.io/kustomize", "github.com/sigstore/", "github.com/google/cel-go", "sigs.k8s.io/cluster-api/", "github.com/cluster-chandler/chandler/internal"} {
			if strings.HasPrefix(pkg, excluded) {
				t.Errorf("importers get %s", pkg)
			}
		}
	}
}

// An example is short enough to be read at once.
func TestExamplesAreShort(t *testing.T) {
	for _, name := range []string{"controller", "source"} {
		data, err := os.ReadFile(filepath.Join(examples, name, "main.go"))
		must.Succeed(t, err)
		if lines := strings.Count(string(data), "\n"); lines > 150 {
			t.Errorf("%s has %d lines", name, lines)
		}
	}
}

// runExample starts a program of module examples, as the admin of a management cluster.
func runExample(t *testing.T, name string, kubeconfig []byte, args ...string) *process.Process {
	t.Helper()
	dir := t.TempDir()
	binary := filepath.Join(dir, name)
	must.Succeed(t, gobuild.Build(t.Context(), examples, binary, "./"+name))
	write(t, filepath.Join(dir, "kubeconfig"), kubeconfig)
	p, err := process.Start(process.Options{
		Name: name, Binary: binary, Args: args, Home: dir, LogFile: filepath.Join(dir, "log"),
		Env: []string{"KUBECONFIG=" + filepath.Join(dir, "kubeconfig")},
	})
	must.Succeed(t, err)
	t.Cleanup(func() {
		p.Kill()
		if t.Failed() {
			t.Logf("%s", p.Tail())
		}
	})
	return p
}

func adminOf(h *hub) []byte {
	return fleettest.KubeconfigOf(h.config)
}

// copied waits until a namespace has the copy of the ConfigMap.
func copied(t *testing.T, in client.Client, namespace, value string) {
	t.Helper()
	wait.Until(t, patience, "the copy in "+namespace, func() error {
		found := &corev1.ConfigMap{}
		if err := in.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "trust"}, found); err != nil {
			return err
		}
		if found.Data["ca"] != value {
			return fmt.Errorf("it has %q", found.Data["ca"])
		}
		return nil
	})
}

// The example of a controller works on a fleet, beside a cluster that never lists, and follows
// what is added to it.
func TestExampleOfAController(t *testing.T) {
	long.InCI(t)
	h := newHub(t)
	h.create(t, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: "trust"}, Data: map[string]string{"ca": h.namespace}})
	h.member(t, "aa-dead", fleettest.Start(t, fleettest.Misbehaviours("/api/v1/namespaces")["hangs"]).Kubeconfig(t))
	h.member(t, "one", h.workload.Kubeconfig())
	p := runExample(t, "controller", adminOf(h), "--namespace", h.namespace, "--allow-loopback")
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "copies-"}}
	must.Succeed(t, h.workloads.Create(t.Context(), namespace))
	copied(t, h.workloads, namespace.Name, h.namespace)

	others, err := client.New(h.other.Config(), client.Options{})
	must.Succeed(t, err)
	h.member(t, "two", h.other.Kubeconfig())
	copied(t, others, "kube-public", h.namespace)
	if err := p.Terminate(patience); err != nil {
		t.Error(err)
	}
}

// The same reconciler works on one cluster, without a fleet.
func TestExampleOfAControllerForOneCluster(t *testing.T) {
	long.InCI(t)
	h := newHub(t)
	h.create(t, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: "trust"}, Data: map[string]string{"ca": h.namespace}})
	p := runExample(t, "controller", adminOf(h), "--namespace", h.namespace, "--single")
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "copies-"}}
	h.create(t, namespace)
	copied(t, h.Client, namespace.Name, h.namespace)
	if err := p.Terminate(patience); err != nil {
		t.Error(err)
	}
}

// The example of a source connects with kubeconfigs that end, and asks for others in time.
func TestExampleOfASource(t *testing.T) {
	long.Test(t)
	h := newHub(t)
	tokens := h.tokens(t)
	g := startGarden(t, h, func() []byte { return h.withToken(tokens()) })
	shoot := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot", "metadata": map[string]any{"namespace": h.namespace, "name": "one"},
	}}
	h.create(t, shoot)
	p := runExample(t, "source", g.kubeconfig, "--namespace", h.namespace, "--allow-loopback")
	wait.Until(t, patience, "it counts", func() error {
		return p.Says("shoots#" + h.namespace + "/one nodes: 0 error: <nil>")
	})
	wait.Until(t, patience, "it asks again before the kubeconfig ends", func() error {
		if n := g.asked.Load(); n < 2 {
			return fmt.Errorf("it asked %d times", n)
		}
		return nil
	})
	h.delete(t, shoot)
	wait.Until(t, patience, "it says that the Shoot is gone", func() error { return p.Says("No such cluster") })
	if err := p.Terminate(patience); err != nil {
		t.Error(err)
	}
}

// garden is an API server with Gardener's subresource adminkubeconfig.
type garden struct {
	kubeconfig []byte
	asked      atomic.Int32
}

func startGarden(t *testing.T, h *hub, kubeconfig func() []byte) *garden {
	t.Helper()
	g := &garden{}
	transport, err := rest.TransportFor(h.config)
	must.Succeed(t, err)
	target, err := url.Parse(h.config.Host)
	must.Succeed(t, err)
	behind := &httputil.ReverseProxy{Transport: transport, FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Header.Del("Authorization")
	}}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/shoots/one/adminkubeconfig") || r.Method != http.MethodPost {
			behind.ServeHTTP(w, r)
			return
		}
		g.asked.Add(1)
		_ = json.NewEncoder(w).Encode(map[string]any{"status": map[string]any{
			"kubeconfig": kubeconfig(), "expirationTimestamp": metav1.NewTime(time.Now().Add(12 * time.Second)),
		}})
	}))
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	g.kubeconfig = fleettest.Kubeconfig(server.URL, ca, &clientcmdapi.AuthInfo{Token: "unused"})
	return g
}
