// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/test/must"
)

// The floor applies objects of so many clusters at once, and so many objects of each. No other setting was faster.
const floorClusters, floorObjects = 8, 4

// installed returns the objects of each cluster, as they were rendered.
func (f *fleet) installed() [][]*unstructured.Unstructured {
	g := NewWithT(f.TB)
	all := make([][]*unstructured.Unstructured, len(f.clusters))
	f.each(func(i int, c *cluster) {
		reader, err := client.New(c.config(f.TB), client.Options{Mapper: c.server.RESTMapper()})
		g.Expect(err).NotTo(HaveOccurred())
		releases := &corev1.SecretList{}
		g.Expect(reader.List(f.Context(), releases, client.MatchingLabels{"owner": "helm", "status": "deployed"})).To(Succeed())
		g.Expect(releases.Items).To(HaveLen(f.size.Addons))
		for _, secret := range releases.Items {
			unzipped, err := gzip.NewReader(base64.NewDecoder(base64.StdEncoding, strings.NewReader(string(secret.Data["release"]))))
			g.Expect(err).NotTo(HaveOccurred())
			release := struct{ Manifest, Namespace string }{}
			g.Expect(json.NewDecoder(unzipped).Decode(&release)).To(Succeed())
			objects, err := record.ParseManifest(release.Manifest)
			g.Expect(err).NotTo(HaveOccurred())
			for _, o := range objects {
				if mapping, err := c.server.RESTMapper().RESTMapping(o.GroupVersionKind().GroupKind(), o.GroupVersionKind().Version); err == nil &&
					mapping.Scope.Name() == "namespace" && o.GetNamespace() == "" {
					o.SetNamespace(release.Namespace)
				}
			}
			all[i] = append(all[i], objects...)
		}
	})
	return all
}

// config leads to the cluster.
func (c *cluster) config(t testing.TB) *rest.Config {
	config, err := clientcmd.RESTConfigFromKubeConfig(c.Kubeconfig)
	must.Succeed(t, err)
	config.QPS = -1
	return config
}

// measureFloor applies the objects to new API servers, each by one connection, and reads nothing.
func measureFloor(t *testing.T, s size, objects [][]*unstructured.Unstructured) phase {
	g := NewWithT(t)
	f := &fleet{TB: t, size: s}
	f.addClusters("f")
	type request struct {
		client dynamic.ResourceInterface
		object *unstructured.Unstructured
	}
	requests := make([][]request, len(f.clusters))
	f.each(func(i int, c *cluster) {
		dyn, err := dynamic.NewForConfig(c.config(t))
		g.Expect(err).NotTo(HaveOccurred())
		for _, a := range f.stack(1).Spec.Addons {
			namespace := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace"}}
			namespace.SetName(a.Namespace)
			_, err := dyn.Resource(corev1.SchemeGroupVersion.WithResource("namespaces")).Apply(t.Context(), a.Namespace, namespace, metav1.ApplyOptions{FieldManager: "floor"})
			g.Expect(err).NotTo(HaveOccurred())
		}
		for _, o := range objects[i] {
			mapping, err := c.server.RESTMapper().RESTMapping(o.GroupVersionKind().GroupKind(), o.GroupVersionKind().Version)
			g.Expect(err).NotTo(HaveOccurred())
			requests[i] = append(requests[i], request{dyn.Resource(mapping.Resource).Namespace(o.GetNamespace()), o})
		}
	})
	begin := f.snapshot()
	used := processTime()
	var clusters errgroup.Group
	clusters.SetLimit(floorClusters)
	for i := range f.clusters {
		clusters.Go(func() error {
			var applying errgroup.Group
			applying.SetLimit(floorObjects)
			for _, r := range requests[i] {
				applying.Go(func() error {
					_, err := r.client.Apply(t.Context(), r.object.GetName(), r.object, metav1.ApplyOptions{FieldManager: "floor", Force: true})
					return err
				})
			}
			return applying.Wait()
		})
	}
	g.Expect(clusters.Wait()).To(Succeed())
	took := time.Since(begin.at)
	own := processTime() - used
	p := f.since(begin)
	p.Seconds, p.CPU, p.AllCPU = took.Seconds(), own.Seconds(), p.AllCPU+own.Seconds()
	f.stop()
	return p
}
