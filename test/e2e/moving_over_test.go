// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"helm.sh/helm/v4/pkg/action"
	helmchart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	helmkube "helm.sh/helm/v4/pkg/kube"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/cluster-chandler/chandler/internal/migration"
	"github.com/cluster-chandler/chandler/test/must"
)

// installPreviousKinds installs the kinds of the Helm add-on provider and of Flux once, without their schemas.
var installPreviousKinds = sync.OnceValue(func() error {
	for kind, group := range map[string]string{
		"HelmChartProxy": "addons.cluster.x-k8s.io/v1alpha1", "HelmReleaseProxy": "addons.cluster.x-k8s.io/v1alpha1",
		"HelmRelease": "helm.toolkit.fluxcd.io/v2", "HelmRepository": "source.toolkit.fluxcd.io/v1",
	} {
		group, version, _ := strings.Cut(group, "/")
		if err := world.hub.Create(context.Background(), definitionOf(group, version, kind, apiextensionsv1.NamespaceScoped)); err != nil {
			return err
		}
	}
	return nil
})

// previousRelease is a release that others installed on all clusters.
type previousRelease struct {
	chart, namespace string
	archive          []byte
	// values of a cluster, and the template that makes them.
	values   func(cluster string) map[string]any
	template string
	// name of the release on a cluster.
	name func(cluster string) string
}

func (r previousRelease) version(t *testing.T) string {
	t.Helper()
	return r.load(t).Metadata.Version
}

func (r previousRelease) load(t *testing.T) *helmchart.Chart {
	t.Helper()
	ch, err := loader.LoadArchive(bytes.NewReader(r.archive))
	must.Succeed(t, err)
	return ch
}

// moving is a fleet whose releases are of others at first.
type moving struct {
	*tenant
	clusters   map[string]*rest.Config
	releases   []previousRelease
	repository string // URL
}

// newMoving returns a fleet without clusters, and serves the charts.
func newMoving(t *testing.T, releases ...previousRelease) *moving {
	t.Helper()
	must.Succeed(t, installPreviousKinds())
	m := &moving{tenant: newTenant(t), clusters: map[string]*rest.Config{}, releases: releases}
	files := map[string][]byte{}
	index := &strings.Builder{}
	fmt.Fprint(index, "apiVersion: v1\nentries:\n")
	for _, r := range releases {
		sum := sha256.Sum256(r.archive)
		fmt.Fprintf(index, "  %s:\n  - {apiVersion: v2, name: %s, version: %s, digest: %s, urls: [%s.tgz]}\n", r.chart, r.chart, r.version(t), hex.EncodeToString(sum[:]), r.chart)
		files["/"+r.chart+".tgz"] = r.archive
	}
	files["/index.yaml"] = []byte(index.String())
	m.repository = "http://" + serveFiles(t, files)
	return m
}

// joins makes a Cluster of a kubeconfig.
func (m *moving) joins(name string, kubeconfig []byte) {
	m.t.Helper()
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	must.Succeed(m.t, err)
	m.clusters[name] = config
	m.writeKubeconfig(name, kubeconfig)
	m.makeClusterObject(name, labels("env=prod"))
}

// names returns the names of the clusters, in order.
func (m *moving) names() []string { return slices.Sorted(maps.Keys(m.clusters)) }

// workload returns a client of a cluster.
func (m *moving) workload(_ context.Context, cluster string) (client.Client, error) {
	return client.New(m.clusters[cluster], client.Options{})
}

// storageOf is where the records of a release are.
func storageOf(origin migration.Origin, r previousRelease) string {
	if origin == migration.Flux {
		return "flux-system"
	}
	return r.namespace
}

// helmOn returns Helm's library for a cluster.
func (m *moving) helmOn(cluster, namespace, storage string) *action.Configuration {
	m.t.Helper()
	config := action.NewConfiguration()
	must.Succeed(m.t, config.Init(helmGetter{m.clusters[cluster], namespace}, storage, "secret"))
	return config
}

// install installs all releases on all clusters as their owner does, and makes the owner's objects.
func (m *moving) install(origin migration.Origin) {
	m.t.Helper()
	m.makeOwners(origin)
	for cluster, config := range m.clusters {
		workload, err := client.New(config, client.Options{})
		m.Expect(err).NotTo(HaveOccurred())
		for _, r := range m.releases {
			for _, name := range []string{r.namespace, storageOf(origin, r)} {
				namespace := &corev1.Namespace{}
				namespace.Name = name
				m.Expect(client.IgnoreAlreadyExists(workload.Create(m.t.Context(), namespace))).To(Succeed())
			}
			install := action.NewInstall(m.helmOn(cluster, r.namespace, storageOf(origin, r)))
			install.ReleaseName, install.Namespace = r.name(cluster), r.namespace
			install.WaitStrategy, install.Timeout = helmkube.HookOnlyStrategy, time.Minute
			_, err := install.Run(r.load(m.t), r.values(cluster))
			m.Expect(err).NotTo(HaveOccurred(), r.chart)
			m.makeOwned(origin, r, cluster)
		}
	}
}

// make makes an object of the management cluster from YAML.
func (m *moving) make(text string) {
	m.t.Helper()
	o := &unstructured.Unstructured{}
	must.Succeed(m.t, yaml.Unmarshal([]byte(text), &o.Object))
	o.SetNamespace(m.namespace)
	m.create(o)
}

// makeOwners makes the objects that are there once for all clusters.
func (m *moving) makeOwners(origin migration.Origin) {
	m.t.Helper()
	if origin == migration.Flux {
		m.make("apiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmRepository\nmetadata: {name: charts}\nspec: {interval: 1h, url: " + quoted(m.repository) + "}\n")
	}
	for _, r := range m.releases {
		if origin == migration.Provider {
			m.make(fmt.Sprintf(`apiVersion: addons.cluster.x-k8s.io/v1alpha1
kind: HelmChartProxy
metadata: {name: %s, finalizers: [helmchartproxy.addons.cluster.x-k8s.io]}
spec: {clusterSelector: {matchLabels: {env: prod}}, repoURL: '%s', chartName: %s, namespace: %s, valuesTemplate: %q}
`, r.chart, m.repository, r.chart, r.namespace, r.template))
		}
	}
}

// makeOwned makes the object that is there for each cluster.
func (m *moving) makeOwned(origin migration.Origin, r previousRelease, cluster string) {
	m.t.Helper()
	text, err := yaml.Marshal(r.values(cluster))
	must.Succeed(m.t, err)
	switch origin {
	case migration.Provider:
		m.make(fmt.Sprintf(`apiVersion: addons.cluster.x-k8s.io/v1alpha1
kind: HelmReleaseProxy
metadata:
  name: %s-%s-x1
  labels: {cluster.x-k8s.io/cluster-name: %s, helmreleaseproxy.addons.cluster.x-k8s.io/helmchartproxy-name: %s}
  finalizers: [helmreleaseproxy.addons.cluster.x-k8s.io]
spec:
  clusterRef: {apiVersion: cluster.x-k8s.io/v1beta2, kind: Cluster, namespace: %s, name: %s}
  repoURL: '%s'
  chartName: %s
  releaseName: %s
  namespace: %s
  values: %q
`, r.chart, cluster, cluster, r.chart, m.namespace, cluster, m.repository, r.chart, r.name(cluster), r.namespace, text))
	case migration.Flux:
		m.make(fmt.Sprintf(`apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: %s-%s, finalizers: [finalizers.fluxcd.io]}
spec:
  interval: 5m
  chart: {spec: {chart: %s, version: "*", sourceRef: {kind: HelmRepository, name: charts}}}
  kubeConfig: {secretRef: {name: %s-kubeconfig}}
  releaseName: %s
  targetNamespace: %s
  storageNamespace: flux-system
  values:
    %s
`, r.chart, cluster, r.chart, cluster, r.name(cluster), r.namespace, strings.ReplaceAll(string(text), "\n", "\n    ")))
	}
}
