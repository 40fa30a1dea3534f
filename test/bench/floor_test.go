// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"
	helmrelease "helm.sh/helm/v4/pkg/release/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/test/must"
)

// The floor applies objects of so many clusters at once, and so many objects of each. No other setting was faster.
const floorClusters, floorObjects = 8, 4

// installation is an add-on as it was installed.
type installation struct {
	namespace string
	record    corev1.Secret
	objects   []*unstructured.Unstructured
	hooks     []*helmrelease.Hook
}

// installed returns the add-ons of each cluster, as they were rendered.
func (f *fleet) installed() [][]installation {
	g := NewWithT(f.TB)
	all := make([][]installation, len(f.clusters))
	f.each(func(i int, c *cluster) {
		reader, err := client.New(c.config(f.TB), client.Options{Mapper: c.server.RESTMapper()})
		g.Expect(err).NotTo(HaveOccurred())
		releases := &corev1.SecretList{}
		g.Expect(reader.List(f.Context(), releases, client.MatchingLabels{"owner": "helm", "status": "deployed"})).To(Succeed())
		g.Expect(releases.Items).To(HaveLen(f.size.Addons))
		for _, secret := range releases.Items {
			unzipped, err := gzip.NewReader(base64.NewDecoder(base64.StdEncoding, strings.NewReader(string(secret.Data["release"]))))
			g.Expect(err).NotTo(HaveOccurred())
			release := helmrelease.Release{}
			g.Expect(json.NewDecoder(unzipped).Decode(&release)).To(Succeed())
			objects, err := record.ParseManifest(release.Manifest)
			g.Expect(err).NotTo(HaveOccurred())
			c.scope(objects, release.Namespace)
			all[i] = append(all[i], installation{release.Namespace, secret, objects, release.Hooks})
		}
	})
	return all
}

// scope puts objects that name no namespace into that of their release.
func (c *cluster) scope(objects []*unstructured.Unstructured, namespace string) {
	for _, o := range objects {
		if mapping, err := c.server.RESTMapper().RESTMapping(o.GroupVersionKind().GroupKind(), o.GroupVersionKind().Version); err == nil &&
			mapping.Scope.Name() == "namespace" && o.GetNamespace() == "" {
			o.SetNamespace(namespace)
		}
	}
}

// config leads to the cluster.
func (c *cluster) config(t testing.TB) *rest.Config {
	config, err := clientcmd.RESTConfigFromKubeConfig(c.Kubeconfig)
	must.Succeed(t, err)
	config.QPS = -1
	return config
}

// leanest is a client of a cluster that reads nothing.
type leanest struct {
	*cluster
	dynamic.Interface
	t testing.TB
}

func (l leanest) of(o *unstructured.Unstructured) dynamic.ResourceInterface {
	mapping, err := l.server.RESTMapper().RESTMapping(o.GroupVersionKind().GroupKind(), o.GroupVersionKind().Version)
	must.Succeed(l.t, err)
	return l.Resource(mapping.Resource).Namespace(o.GetNamespace())
}

func (l leanest) apply(o *unstructured.Unstructured) error {
	_, err := l.of(o).Apply(l.t.Context(), o.GetName(), o, metav1.ApplyOptions{FieldManager: "floor", Force: true})
	return err
}

// together does something with each object, with some at once.
func together(objects []*unstructured.Unstructured, do func(*unstructured.Unstructured) error) error {
	var all errgroup.Group
	all.SetLimit(floorObjects)
	for _, o := range objects {
		all.Go(func() error { return do(o) })
	}
	return all.Wait()
}

// namespaceOf returns the namespace of an add-on.
func namespaceOf(name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace"}}
	o.SetName(name)
	return o
}

// measureFloor applies the objects to new API servers, each by one connection, and reads nothing.
func measureFloor(t *testing.T, s size, all [][]installation) phase {
	return measureLeanest(t, s, func(i int, l leanest) (func() error, error) {
		var objects []*unstructured.Unstructured
		for _, a := range all[i] {
			if err := l.apply(namespaceOf(a.namespace)); err != nil {
				return nil, err
			}
			objects = append(objects, a.objects...)
		}
		return func() error { return together(objects, l.apply) }, nil
	})
}

// measureSameWrites makes all writes that Chandler makes, and reads nothing but the ends of Jobs. All add-ons of a cluster are installed beside
// each other.
func measureSameWrites(t *testing.T, s size, all [][]installation) phase {
	return measureLeanest(t, s, func(i int, l leanest) (func() error, error) {
		return func() error {
			var addons errgroup.Group
			for _, a := range all[i] {
				addons.Go(func() error { return l.install(a) })
			}
			return addons.Wait()
		}, nil
	})
}

// install makes the writes of an add-on.
func (l leanest) install(a installation) error {
	secrets := l.Resource(corev1.SchemeGroupVersion.WithResource("secrets")).Namespace(a.namespace)
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Name: a.record.Name, Labels: a.record.Labels, Annotations: a.record.Annotations}, Type: a.record.Type, Data: a.record.Data,
	})
	if err != nil {
		return err
	}
	if err := l.apply(namespaceOf(a.namespace)); err != nil {
		return err
	}
	written, err := secrets.Create(l.t.Context(), &unstructured.Unstructured{Object: fields}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	if err := l.run(a, helmrelease.HookPreInstall); err != nil {
		return err
	}
	if err := together(a.objects, l.apply); err != nil {
		return err
	}
	if err := l.run(a, helmrelease.HookPostInstall); err != nil {
		return err
	}
	written.SetLabels(map[string]string{"status": "deployed"})
	_, err = secrets.Update(l.t.Context(), written, metav1.UpdateOptions{})
	return err
}

// run applies the objects of hooks, the Jobs among them last, and deletes all of them once the Jobs have ended.
func (l leanest) run(a installation, event helmrelease.HookEvent) error {
	var jobs, others []*unstructured.Unstructured
	for _, hook := range a.hooks {
		if !slices.Contains(hook.Events, event) {
			continue
		}
		objects, err := record.ParseManifest(hook.Manifest)
		if err != nil {
			return err
		}
		l.scope(objects, a.namespace)
		if hook.Kind == "Job" {
			jobs = append(jobs, objects...)
		} else {
			others = append(others, objects...)
		}
	}
	if err := together(others, l.apply); err != nil {
		return err
	}
	if err := together(jobs, l.applyAndAwait); err != nil {
		return err
	}
	return together(append(others, jobs...), func(o *unstructured.Unstructured) error {
		return l.of(o).Delete(l.t.Context(), o.GetName(), metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationBackground)})
	})
}

// applyAndAwait applies a Job, and waits until it has ended.
func (l leanest) applyAndAwait(o *unstructured.Unstructured) error {
	if err := l.apply(o); err != nil {
		return err
	}
	watch, err := l.of(o).Watch(l.t.Context(), metav1.ListOptions{}) // clusters that share an API server have no field selectors
	if err != nil {
		return err
	}
	defer watch.Stop()
	for event := range watch.ResultChan() {
		if is, ok := event.Object.(*unstructured.Unstructured); ok && is.GetName() == o.GetName() {
			if n, _, _ := unstructured.NestedInt64(is.Object, "status", "succeeded"); n > 0 {
				return nil
			}
		}
	}
	return fmt.Errorf("the watch of Job %s ended", o.GetName())
}

// measureLeanest measures what the leanest client does with each of new clusters, after its preparation.
func measureLeanest(t *testing.T, s size, prepare func(int, leanest) (do func() error, err error)) phase {
	g := NewWithT(t)
	f := &fleet{TB: t, size: s}
	f.addClusters("f")
	for _, server := range f.servers {
		simulate(t, server.Clientset)
	}
	todo := make([]func() error, len(f.clusters))
	f.each(func(i int, c *cluster) {
		dyn, err := dynamic.NewForConfig(c.config(t))
		g.Expect(err).NotTo(HaveOccurred())
		todo[i], err = prepare(i, leanest{c, dyn, t})
		g.Expect(err).NotTo(HaveOccurred())
	})
	begin := f.snapshot()
	used := processTime()
	var clusters errgroup.Group
	clusters.SetLimit(floorClusters)
	for _, do := range todo {
		clusters.Go(do)
	}
	g.Expect(clusters.Wait()).To(Succeed())
	took := time.Since(begin.at)
	own := processTime() - used
	p := f.since(begin)
	p.Seconds, p.CPU, p.AllCPU = took.Seconds(), own.Seconds(), p.AllCPU+own.Seconds()
	f.stop()
	return p
}
