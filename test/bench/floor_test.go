// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/test/apiserver"
	"github.com/cluster-chandler/chandler/test/controlplane"
)

// The floor applies objects of so many clusters at once, and so many objects of each. No other setting was faster.
const floorClusters, floorObjects = 8, 4

// installed returns the objects of each cluster, as they were rendered.
func (f *fleet) installed() [][]*unstructured.Unstructured {
	g := NewWithT(f.T)
	all := make([][]*unstructured.Unstructured, len(f.clusters))
	for i, c := range f.clusters {
		releases := &corev1.SecretList{}
		g.Expect(c.List(f.Context(), releases, client.MatchingLabels{"owner": "helm", "status": "deployed"})).To(Succeed())
		for _, secret := range releases.Items {
			unzipped, err := gzip.NewReader(base64.NewDecoder(base64.StdEncoding, strings.NewReader(string(secret.Data["release"]))))
			g.Expect(err).NotTo(HaveOccurred())
			release := struct{ Manifest, Namespace string }{}
			g.Expect(json.NewDecoder(unzipped).Decode(&release)).To(Succeed())
			objects, err := record.ParseManifest(release.Manifest)
			g.Expect(err).NotTo(HaveOccurred())
			for _, o := range objects {
				if mapping, err := c.RESTMapper().RESTMapping(o.GroupVersionKind().GroupKind(), o.GroupVersionKind().Version); err == nil &&
					mapping.Scope.Name() == "namespace" && o.GetNamespace() == "" {
					o.SetNamespace(release.Namespace)
				}
			}
			all[i] = append(all[i], objects...)
		}
	}
	return all
}

// measureFloor applies the objects to new API servers, each by one connection, and reads nothing.
func measureFloor(t *testing.T, n int, objects [][]*unstructured.Unstructured) phase {
	g := NewWithT(t)
	f := &fleet{T: t}
	type request struct {
		client dynamic.ResourceInterface
		object *unstructured.Unstructured
	}
	requests := make([][]request, n)
	for i := range n {
		s, err := apiserver.Start(t.Context(), world.dir, controlplane.Options{Name: fmt.Sprintf("f%d", i)})
		g.Expect(err).NotTo(HaveOccurred())
		f.clusters = append(f.clusters, s)
		user, err := s.AddUser("chandler", "system:masters")
		g.Expect(err).NotTo(HaveOccurred())
		config := user.Config
		config.QPS = -1
		dyn, err := dynamic.NewForConfig(config)
		g.Expect(err).NotTo(HaveOccurred())
		for _, name := range []string{"ingress-nginx", "monitoring"} {
			g.Expect(s.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})).To(Succeed())
		}
		for _, o := range objects[i] {
			mapping, err := s.RESTMapper().RESTMapping(o.GroupVersionKind().GroupKind(), o.GroupVersionKind().Version)
			g.Expect(err).NotTo(HaveOccurred())
			requests[i] = append(requests[i], request{dyn.Resource(mapping.Resource).Namespace(o.GetNamespace()), o})
		}
	}
	begin := f.snapshot()
	used := processTime()
	var clusters errgroup.Group
	clusters.SetLimit(floorClusters)
	for i := range n {
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
	for _, s := range f.clusters {
		g.Expect(s.Stop()).To(Succeed())
	}
	return p
}
