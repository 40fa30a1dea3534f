// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// cluster has the ConfigMaps and Secrets of a management cluster.
type cluster struct {
	client.Reader
	requests atomic.Int32                 // for content
	fail     func(client.ObjectKey) error // nil: it doesn't
	block    chan struct{}                // nil: it answers at once

	mu      sync.Mutex
	version int
	objects map[string]client.Object
}

func newCluster(t testing.TB, objects ...client.Object) *cluster {
	t.Helper()
	c := &cluster{objects: map[string]client.Object{}}
	for _, object := range objects {
		c.set(object)
	}
	return c
}

// metadata is the cache of versions, which never lags.
type metadata struct {
	client.Reader
	of *cluster
}

func (c *cluster) metadata() *metadata { return &metadata{of: c} }

// set makes an object, or changes it.
func (c *cluster) set(object client.Object) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.version++
	object = object.DeepCopyObject().(client.Object)
	object.SetResourceVersion(fmt.Sprint(c.version))
	name := nameOf(object, client.ObjectKeyFromObject(object))
	object.SetUID(types.UID(name))
	c.objects[name] = object
}

func nameOf(object client.Object, key client.ObjectKey) string {
	switch object.(type) {
	case *corev1.ConfigMap:
		return "ConfigMap " + key.String()
	case *corev1.Secret:
		return "Secret " + key.String()
	}
	return object.GetObjectKind().GroupVersionKind().Kind + " " + key.String()
}

func (c *cluster) find(object client.Object, key client.ObjectKey) (client.Object, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	found, known := c.objects[nameOf(object, key)]
	if !known {
		return nil, apierrors.NewNotFound(schema.GroupResource{}, key.Name)
	}
	return found, nil
}

func (c *cluster) Get(ctx context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	c.requests.Add(1)
	if c.block != nil {
		select {
		case <-c.block:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if c.fail != nil {
		if err := c.fail(key); err != nil {
			return err
		}
	}
	found, err := c.find(object, key)
	if err != nil {
		return err
	}
	switch into := object.(type) {
	case *corev1.ConfigMap:
		found.(*corev1.ConfigMap).DeepCopyInto(into)
	case *corev1.Secret:
		found.(*corev1.Secret).DeepCopyInto(into)
	}
	return nil
}

func (m *metadata) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	found, err := m.of.find(object, key)
	if err == nil {
		object.SetUID(found.GetUID())
		object.SetResourceVersion(found.GetResourceVersion())
	}
	return err
}

func named(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

// secret of team-a with these keys, in turn with their values.
func secret(name string, keys ...string) *corev1.Secret {
	s := &corev1.Secret{ObjectMeta: named("team-a", name), Data: map[string][]byte{}}
	for i := 0; i < len(keys); i += 2 {
		s.Data[keys[i]] = []byte(keys[i+1])
	}
	return s
}

// charts is a ConfigMap with an archive.
func charts(namespace string, archive []byte) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: named(namespace, "charts"), BinaryData: map[string][]byte{"chart.tgz": archive}}
}
