// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	helmchart "helm.sh/helm/v4/pkg/chart/v2"
	repo "helm.sh/helm/v4/pkg/repo/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/faulty"
	"github.com/cluster-chandler/chandler/test/registry"
)

// namedChart has one ConfigMap, named after the release and the chart, with the chart's version.
var namedChart = chart{"templates/text.yaml": configMap("{{ .Release.Name }}-{{ .Chart.Name }}", "{{ .Chart.Version | quote }}")}

// TestDependencies installs an umbrella chart that has a dependency in a registry and one
// in a Helm repository, none of them packaged with it; and then takes the repository away.
func TestDependencies(t *testing.T) {
	t.Parallel()
	tn := newTenant(t)
	oci := registry.Start(t, registry.Options{})
	shelf := &helmShelf{index: repo.NewIndexFile(), archives: map[string][]byte{}}
	authority := registry.NewAuthority(t)
	helm := faulty.Start(t, authority, shelf)
	credentials, cache := filepath.Join(t.TempDir(), "credentials"), filepath.Join(t.TempDir(), "cache")
	NewWithT(t).Expect(os.Mkdir(credentials, 0o750)).To(Succeed())
	NewWithT(t).Expect(os.WriteFile(filepath.Join(credentials, "ca.crt"), append(oci.CA, authority.PEM...), 0o600)).To(Succeed())

	publish := func(version string) {
		shelf.publish(t, "database", version)
		oci.Push(t, namedChart.archive("library", version), "charts/library", version)
		oci.Push(t, umbrella(t, helm.URL("/"), oci.URL("charts"), version).archive("umbrella", version), "charts/umbrella", version)
	}
	publish("1.0.0")
	start := func() { tn.startManager("--credentials-dir="+credentials, "--cache-dir="+cache) }
	start()
	stack := func(name, version string) {
		tn.makeStack(name, labels("stack="+name), tn.addon("umbrella", "", func(a *addonsv1.Addon) {
			a.Chart = addonsv1.ChartSource{OCI: &addonsv1.OCISource{URL: oci.URL("charts/umbrella")}, Version: version}
		}))
	}
	expectAll := func(tn *tenant, s *server, cluster, version string) {
		tn.t.Helper()
		tn.awaitCluster(cluster, "all dependencies are there", ready("umbrella"), installedAs("umbrella", 1, version))
		for _, name := range []string{"umbrella-umbrella", "umbrella-db", "umbrella-library"} {
			found := &corev1.ConfigMap{}
			NewWithT(tn.t).Expect(s.Get(tn.t.Context(), client.ObjectKey{Namespace: tn.namespace, Name: name}, found)).To(Succeed(), "each chart makes its own object")
			NewWithT(tn.t).Expect(found.Data).To(HaveKeyWithValue("text", version))
		}
	}
	stack("first", "1.0.0")
	tn.makeCluster("first", workloadServer(t, 0), labels("stack=first"))
	expectAll(tn, workloadServer(t, 0), "first", "1.0.0")

	t.Run("a cluster that comes later, with the repository down, after a restart", func(t *testing.T) {
		tn := tn.in(t)
		helm.Stop()
		helm.Requests()
		oci.Requests(t)
		tn.stopManager()
		start()
		tn.makeCluster("second", workloadServer(t, 1), labels("stack=first"))
		tn.awaitReconcile("clusteraddon", 0)
		tn.settle()
		NewWithT(t).Expect(helm.Requests()).To(BeEmpty())
		NewWithT(t).Expect(oci.Requests(t)).To(HaveLen(1), "a new cluster asks for the umbrella's tag; all archives are in the cache")
		expectAll(tn, workloadServer(t, 1), "second", "1.0.0")
	})

	t.Run("a dependency that isn't in the cache, with its source down", func(t *testing.T) {
		tn := tn.in(t)
		publish("2.0.0")
		stack("third", "2.0.0")
		tn.makeCluster("third", workloadServer(t, 2), labels("stack=third"))
		tn.awaitCluster("third", "a dependency is missing", phase("umbrella", addonsv1.AddonPending, "SourceUnavailable",
			`dependencies[0] of Chart.yaml of chart "umbrella 2.0.0", "database 2.0.0" at "`+helm.URL("/")+`"`))
		tn.awaitCluster("first", "what is installed stays", ready("umbrella"), installedAs("umbrella", 1, "1.0.0"))
		helm.Resume(t)
		back := time.Now()
		expectAll(tn, workloadServer(t, 2), "third", "2.0.0")
		t.Logf("ready %s after the repository was back", time.Since(back).Round(time.Millisecond))
	})
}

// umbrella has both dependencies in Chart.yaml, and a lock as `helm dependency update` makes it.
func umbrella(t *testing.T, helm, oci, version string) chart {
	t.Helper()
	wanted := []*helmchart.Dependency{{Name: "database", Version: "~" + version, Repository: helm, Alias: "db"}, {Name: "library", Version: "x.x.x", Repository: oci}}
	locked := []*helmchart.Dependency{{Name: "database", Version: version, Repository: helm}, {Name: "library", Version: version, Repository: oci}}
	data, err := json.Marshal([2][]*helmchart.Dependency{wanted, locked})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	sum := sha256.Sum256(data)
	c := chart{"templates/text.yaml": namedChart["templates/text.yaml"]}
	for file, content := range map[string]any{
		"Chart.yaml": map[string]any{"dependencies": wanted},
		"Chart.lock": helmchart.Lock{Digest: "sha256:" + hex.EncodeToString(sum[:]), Dependencies: locked},
	} {
		text, err := yaml.Marshal(content)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		c[file] = string(text)
	}
	return c
}

// helmShelf is a Helm repository in memory.
type helmShelf struct {
	mu       sync.Mutex
	index    *repo.IndexFile
	archives map[string][]byte
}

func (s *helmShelf) publish(t *testing.T, name, version string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	file := name + "-" + version + ".tgz"
	NewWithT(t).Expect(s.index.MustAdd(&helmchart.Metadata{APIVersion: "v2", Name: name, Version: version}, file, "", "")).To(Succeed())
	s.archives["/"+file] = namedChart.archive(name, version)
}

func (s *helmShelf) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	data, found := s.archives[r.URL.Path]
	if r.URL.Path == "/index.yaml" {
		text, err := yaml.Marshal(s.index)
		data, found = text, err == nil
	}
	if !found {
		http.NotFound(w, r)
		return
	}
	_, _ = w.Write(data)
}
