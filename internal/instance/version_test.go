// SPDX-License-Identifier: Apache-2.0

package instance_test

import (
	"context"
	"fmt"
	"maps"
	"runtime"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-chandler/chandler/internal/instance"
	"github.com/cluster-chandler/chandler/test/apiserver"
	"github.com/cluster-chandler/chandler/test/controlplane"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/suite"
)

var server *apiserver.Server

func TestMain(m *testing.M) {
	suite.Suite{Name: "instance", Parallel: 1, Prepare: func(ctx context.Context, _, dir string) (err error) {
		server, err = apiserver.Start(ctx, dir, controlplane.Options{Name: "shared"})
		return err
	}}.Run(m)
}

// start returns a running cache of some namespaces.
func start(t *testing.T, config *rest.Config, namespaces ...string) cache.Cache {
	t.Helper()
	options := instance.Scope{Namespaces: namespaces}.CacheOptions(time.Hour, instance.Version)
	options.Scheme = apiserver.Scheme()
	maps.DeleteFunc(options.ByObject, func(o client.Object, _ cache.ByObject) bool { // the server has no CRDs
		_, isSecret := o.(*corev1.Secret)
		return !isSecret
	})
	var err error
	options.HTTPClient, err = rest.HTTPClientFor(config)
	must.Succeed(t, err)
	options.Mapper, err = instance.NewMapper(config, options.HTTPClient)
	must.Succeed(t, err)
	c, err := cache.New(config, options)
	must.Succeed(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := c.Start(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { cancel(); running.Wait() })
	return c
}

// metadataOf returns an object without a name.
func metadataOf(kind string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: kind}}
}

// listen returns the events of a kind, as "add team-a/one".
func listen(t *testing.T, c cache.Cache, kind string) <-chan string {
	t.Helper()
	informer, err := c.GetInformer(t.Context(), metadataOf(kind))
	must.Succeed(t, err)
	events := make(chan string, 100)
	tell := func(event string) func(any) {
		return func(o any) { events <- event + " " + client.ObjectKeyFromObject(o.(client.Object)).String() }
	}
	registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: tell("add"), DeleteFunc: tell("delete"), UpdateFunc: func(_, o any) { tell("update")(o) },
	})
	must.Succeed(t, err)
	if !toolscache.WaitForCacheSync(t.Context().Done(), registration.HasSynced) {
		t.Fatal("the cache isn't synced")
	}
	return events
}

func expect(t *testing.T, events <-chan string, want ...string) {
	t.Helper()
	for _, event := range want {
		select {
		case is := <-events:
			if is != event {
				t.Errorf("the event is %q, not %q", is, event)
			}
		case <-t.Context().Done():
			t.Fatalf("there is no event %q", event)
		}
	}
}

// TestVersions follows Secrets of two namespaces, and none of a third.
func TestVersions(t *testing.T) {
	for _, namespace := range []string{"team-a", "team-b", "team-c"} {
		must.Succeed(t, server.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))
	}
	secret := func(namespace, name string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"a": "b"}}}
	}
	early, late := secret("team-a", "early"), secret("team-b", "late")
	must.Succeed(t, server.Create(t.Context(), early))
	c := start(t, server.Config(), "team-a", "team-b")
	events := listen(t, c, "Secret")
	expect(t, events, "add team-a/early")
	expectVersion := func(s *corev1.Secret) {
		t.Helper()
		is := metadataOf("Secret")
		must.Succeed(t, c.Get(t.Context(), client.ObjectKeyFromObject(s), is))
		if is.Name != s.Name || is.Namespace != s.Namespace || is.UID != s.UID || is.ResourceVersion != s.ResourceVersion {
			t.Errorf("the cache has %+v", is.ObjectMeta)
		}
	}
	expectVersion(early)
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(late), metadataOf("Secret")); !apierrors.IsNotFound(err) {
		t.Errorf("a Secret that isn't there: %v", err)
	}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "team-c", Name: "foreign"}, metadataOf("Secret")); err == nil || apierrors.IsNotFound(err) {
		t.Errorf("a Secret of a namespace that isn't watched: %v", err)
	}

	must.Succeed(t, server.Create(t.Context(), secret("team-c", "foreign")))
	must.Succeed(t, server.Create(t.Context(), late))
	expect(t, events, "add team-b/late")
	expectVersion(late)
	early.Labels["a"] = "c"
	must.Succeed(t, server.Update(t.Context(), early))
	expect(t, events, "update team-a/early")
	expectVersion(early)
	must.Succeed(t, server.Delete(t.Context(), late))
	expect(t, events, "delete team-b/late")
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(late), metadataOf("Secret")); !apierrors.IsNotFound(err) {
		t.Errorf("a Secret that was deleted: %v", err)
	}
}

// TestMemory bounds what 10,000 Secrets of other Clusters cost that are in the namespace.
func TestMemory(t *testing.T) {
	long.Test(t)
	const secrets, most = 10_000, 8 << 20
	must.Succeed(t, server.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "large"}}))
	c := start(t, server.Config(), "large")
	events := listen(t, c, "Secret")
	before := heap()
	var all sync.WaitGroup
	for part := range 16 {
		all.Go(func() {
			for n := part; n < secrets; n += 16 {
				if err := server.Create(t.Context(), foreign(n)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for range secrets {
		select {
		case <-events:
		case <-t.Context().Done():
			t.Fatal("not all Secrets are seen")
		}
	}
	all.Wait()
	grown := heap() - before
	t.Logf("%d Secrets take %.2f MiB", secrets, float64(grown)/(1<<20))
	if grown > most {
		t.Errorf("%d Secrets take %d bytes of %d", secrets, grown, most)
	}
	runtime.KeepAlive(c)
}

// foreign returns a Secret as Cluster API makes it for a Cluster.
func foreign(n int) *corev1.Secret {
	cluster := fmt.Sprintf("other-%05d", n/5)
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "large", Name: fmt.Sprintf("%s-%d", cluster, n%5), Labels: map[string]string{clusterv1.ClusterNameLabel: cluster},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "controlplane.cluster.x-k8s.io/v1beta2", Kind: "KubeadmControlPlane", Name: cluster + "-control-plane",
				UID: "6a8b7e0c-4b55-4d5c-b8fb-1a5b4d7c0000", Controller: ptr.To(true),
			}},
		},
		Type: clusterv1.ClusterSecretType, Data: map[string][]byte{"value": []byte("of another instance")},
	}
}

// heap returns the bytes that are in use.
func heap() int64 {
	var stats runtime.MemStats
	for range 3 {
		runtime.GC()
	}
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
