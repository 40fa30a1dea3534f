// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helm.sh/helm/v4/pkg/repo/v1"

	"github.com/cluster-chandler/chandler/test/pki"
	"github.com/cluster-chandler/chandler/test/process"
	"github.com/cluster-chandler/chandler/test/realdata"
	"github.com/cluster-chandler/chandler/test/wait"
)

// helmProviderEnv is the folder of a checkout of the Cluster API Add-on Provider for Helm.
const helmProviderEnv = "CHANDLER_BENCH_HELM_PROVIDER"

// measureHelmProvider has the Cluster API Add-on Provider for Helm install the same charts. It doesn't
// wait for objects to be ready, which is its lightest setting.
func measureHelmProvider(t *testing.T, s size, checkout string) phase {
	g := NewWithT(t)
	binary := filepath.Join(t.TempDir(), "helm-provider")
	build := exec.CommandContext(t.Context(), "go", "build", "-mod=mod", "-o", binary, ".")
	build.Dir = checkout
	out, err := build.CombinedOutput()
	g.Expect(err).NotTo(HaveOccurred(), string(out))

	f := &fleet{TB: t, size: s}
	f.startManagement("helm-management", filepath.Join(checkout, "config/crd/bases"))
	f.addClusters("h")
	f.makeClusters()
	f.startHelmProvider(binary)

	repository := chartRepository(t)
	begin := f.snapshot()
	for _, a := range f.stack(1).Spec.Addons {
		values := a.ValuesTemplate
		if a.Values != nil {
			values = string(a.Values.Raw) // JSON is YAML
		}
		name, version, _ := strings.Cut(strings.TrimSuffix(a.Chart.Path, ".tgz"), a.Name+"-")
		g.Expect(name).To(BeEmpty())
		proxy := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
			"clusterSelector": map[string]any{}, "repoURL": repository, "chartName": a.Name, "version": version,
			"namespace": a.Namespace, "releaseName": a.Name, "valuesTemplate": values,
			"options": map[string]any{"install": map[string]any{"createNamespace": true}},
		}}}
		proxy.SetAPIVersion("addons.cluster.x-k8s.io/v1alpha1")
		proxy.SetKind("HelmChartProxy")
		proxy.SetNamespace(namespace)
		proxy.SetName(a.Name)
		g.Expect(f.hub.Create(t.Context(), proxy)).To(Succeed())
	}
	f.awaitReleases(s.Clusters * s.Addons)
	p := f.since(begin)
	f.stop()
	return p
}

// chartRepository serves the charts as a Helm repository, and returns its address.
func chartRepository(t *testing.T) string {
	g := NewWithT(t)
	charts := realdata.Path(t, "charts")
	mux := http.NewServeMux()
	mux.Handle("/", http.FileServer(http.Dir(charts)))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	index, err := repo.IndexDirectory(charts, server.URL)
	g.Expect(err).NotTo(HaveOccurred())
	file := filepath.Join(t.TempDir(), "index.yaml")
	g.Expect(index.WriteFile(file, 0o644)).To(Succeed())
	mux.HandleFunc("/index.yaml", func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, file) })
	return server.URL
}

// startHelmProvider runs the provider with webhooks that nobody calls.
func (f *fleet) startHelmProvider(binary string) {
	g := NewWithT(f.TB)
	home := f.TempDir()
	identity, err := f.hub.AddUser(user, "system:masters")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(os.WriteFile(filepath.Join(home, "kubeconfig"), identity.Kubeconfig, 0o600)).To(Succeed())
	authority, err := pki.NewAuthority("helm-provider")
	g.Expect(err).NotTo(HaveOccurred())
	pair, err := authority.Server("helm-provider")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(os.WriteFile(filepath.Join(home, "tls.crt"), pair.Certificate, 0o600)).To(Succeed())
	g.Expect(os.WriteFile(filepath.Join(home, "tls.key"), pair.Key, 0o600)).To(Succeed())
	webhooks, err := process.FreeAddress()
	g.Expect(err).NotTo(HaveOccurred())
	_, port, err := net.SplitHostPort(webhooks)
	g.Expect(err).NotTo(HaveOccurred())
	diagnostics, err := process.FreeAddress()
	g.Expect(err).NotTo(HaveOccurred())
	f.other, err = process.Start(process.Options{
		Name: "helm-provider", Binary: binary, Home: home, LogFile: filepath.Join(home, "log"), Env: []string{"KUBECONFIG=" + filepath.Join(home, "kubeconfig")},
		Args: []string{
			"--namespace=" + namespace, "--webhook-port=" + port, "--webhook-cert-dir=" + home, "--health-addr=0",
			"--diagnostics-address=" + diagnostics, "--insecure-diagnostics",
		},
	})
	g.Expect(err).NotTo(HaveOccurred())
	f.Cleanup(f.other.Kill)
}

// awaitReleases returns once so many releases are deployed.
func (f *fleet) awaitReleases(n int) {
	wait.Until(f.TB, f.patience(), "each release is deployed", func() error {
		all := &unstructured.UnstructuredList{}
		all.SetAPIVersion("addons.cluster.x-k8s.io/v1alpha1")
		all.SetKind("HelmReleaseProxyList")
		if err := f.hub.List(f.Context(), all, client.InNamespace(namespace)); err != nil {
			return err
		}
		deployed := 0
		for i := range all.Items {
			if status, _, _ := unstructured.NestedString(all.Items[i].Object, "status", "status"); status == "deployed" {
				deployed++
			}
		}
		if deployed < n {
			return fmt.Errorf("%d of %d releases are deployed; its log ends with %s", deployed, n, f.other.Tail())
		}
		return nil
	})
}
