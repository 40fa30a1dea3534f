// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/cluster-chandler/chandler/fleet"
	"github.com/cluster-chandler/chandler/fleet/limits"
	"github.com/cluster-chandler/chandler/fleet/secrets"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/wait"
)

// inWorkload makes a namespace of the workload cluster, in which each cluster of a test may list what it likes.
func (h *hub) inWorkload(t *testing.T) string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "cached-"}}
	must.Succeed(t, h.workloads.Create(t.Context(), namespace))
	return namespace.Name
}

func (h *hub) configMap(t *testing.T, namespace, name string, labels, data map[string]string) {
	t.Helper()
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels}, Data: data}
	must.Succeed(t, h.workloads.Create(t.Context(), object))
}

// cached waits until a cache has listed, and returns the error of a read otherwise.
func cached(t *testing.T, conn *fleet.Connection, list client.ObjectList, o ...client.ListOption) {
	t.Helper()
	wait.Until(t, patience, "the cache lists", func() error { return conn.GetClient().List(t.Context(), list, o...) })
}

// TestCacheOptions are those of a program, for the cache and the client of each cluster.
func TestCacheOptions(t *testing.T) {
	h := newHub(t)
	namespace, other := h.inWorkload(t), h.inWorkload(t)
	h.configMap(t, namespace, "blue", map[string]string{"color": "blue"}, map[string]string{"a": "b"})
	h.configMap(t, namespace, "green", map[string]string{"color": "green"}, nil)
	h.configMap(t, other, "blue", map[string]string{"color": "blue"}, nil)
	// It is one for all clusters: none may have the cache of another.
	shared := &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}}}
	o := quick(secrets.New(secrets.Options{}))
	o.Cluster = []cluster.Option{func(made *cluster.Options) {
		made.Cache.DefaultNamespaces = map[string]cache.Config{namespace: {}}
		made.Cache.ByObject = map[client.Object]cache.ByObject{&corev1.ConfigMap{}: {Label: labels.SelectorFromSet(labels.Set{"color": "blue"})}}
		made.Cache.DefaultTransform = func(object any) (any, error) {
			if c, ok := object.(*corev1.ConfigMap); ok {
				c.Data = map[string]string{"transformed": "yes"}
			}
			return object, nil
		}
		made.Client.Cache = shared
	}}
	h.run(t, o)
	h.member(t, "one", h.workload.Kubeconfig())
	h.member(t, "two", h.other.Kubeconfig())
	conn, second := h.connected(t, h.memberName("one")), h.connected(t, h.memberName("two"))

	list := &corev1.ConfigMapList{}
	cached(t, conn, list)
	if len(list.Items) != 1 || list.Items[0].Name != "blue" || list.Items[0].Namespace != namespace || list.Items[0].Data["transformed"] != "yes" {
		t.Errorf("the cache has %+v", list.Items)
	}
	cached(t, second, list)
	if len(list.Items) > 0 {
		t.Errorf("the cache of another cluster has %+v", list.Items)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: other, Name: "direct"}}
	must.Succeed(t, h.workloads.Create(t.Context(), secret))
	if err := conn.GetClient().Get(t.Context(), client.ObjectKeyFromObject(secret), secret); err != nil {
		t.Errorf("a kind that isn't cached: %v", err)
	}
}

// TestCauseOfACacheThatIsNotSynced is in the error of each read: a missing right, or a limit.
func TestCauseOfACacheThatIsNotSynced(t *testing.T) {
	h := newHub(t)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", GenerateName: "nobody-"}}
	must.Succeed(t, h.workloads.Create(t.Context(), account))
	h.configMap(t, h.inWorkload(t), "large", nil, map[string]string{"a": strings.Repeat("x", 200<<10)})
	o := quick(secrets.New(secrets.Options{}))
	o.Limits = limits.Limits{List: 150 << 10}
	h.run(t, o)
	h.member(t, "one", h.workload.Kubeconfig())
	h.member(t, "nobody", h.withToken(h.tokenOf(t, account)))
	read := func(name string, into client.ObjectList, kind string, is func(error) bool) {
		t.Helper()
		conn := h.connected(t, h.memberName(name))
		wait.Until(t, patience, "the cause", func() error {
			err := conn.GetClient().List(t.Context(), into)
			if !errors.Is(err, fleet.ErrCacheNotSynced) || !strings.Contains(err.Error(), kind) || !is(err) {
				return fmt.Errorf("%w", err)
			}
			t.Log(err)
			return nil
		})
	}
	read("nobody", &corev1.ConfigMapList{}, "v1 ConfigMap", apierrors.IsForbidden)
	read("nobody", &rbacv1.RoleList{}, "rbac.authorization.k8s.io/v1 Role", apierrors.IsForbidden)
	read("one", &corev1.ConfigMapList{}, "v1 ConfigMap", func(err error) bool {
		exceeded, ok := errors.AsType[*fleet.LimitError](err)
		return ok && exceeded.Reason == limits.ResponseTooLarge
	})
}

// TestFiveThousandPods are 40 MiB. An ordinary controller sees them once the limit is raised, and the reason otherwise.
func TestFiveThousandPods(t *testing.T) {
	long.Test(t)
	h := newHub(t)
	namespace := h.inWorkload(t)
	pods(t, h.workloads, namespace, 5000)
	t.Cleanup(func() {
		_ = h.workloads.DeleteAllOf(context.WithoutCancel(t.Context()), &corev1.Pod{}, client.InNamespace(namespace), client.GracePeriodSeconds(0))
	})
	h.member(t, "one", h.workload.Kubeconfig())
	stop := h.run(t, quick(secrets.New(secrets.Options{})))
	conn := h.connected(t, h.memberName("one"))
	_, err := exceeded(conn.GetAPIReader().List(t.Context(), &corev1.PodList{}))
	if err != nil {
		t.Errorf("a direct list: %v", err)
	}
	wait.Until(t, 2*patience, "the cause", func() error {
		says, err := exceeded(conn.GetClient().List(t.Context(), &corev1.PodList{}))
		if err == nil {
			t.Log(says)
		}
		return err
	})
	stop()

	o := quick(secrets.New(secrets.Options{}))
	o.Limits.List = 128 << 20
	h.run(t, o)
	conn = h.connected(t, h.memberName("one"))
	list := &corev1.PodList{}
	if err := conn.GetAPIReader().List(t.Context(), list); err != nil || len(list.Items) < 5000 {
		t.Errorf("a direct list has %d Pods: %v", len(list.Items), err)
	}
	wait.Until(t, 2*patience, "the cache lists", func() error { return conn.GetClient().List(t.Context(), list) })
	if len(list.Items) < 5000 {
		t.Errorf("the cache has %d Pods", len(list.Items))
	}
}

// exceeded returns what a LimitError says, or that an error is none.
func exceeded(err error) (string, error) {
	limit, ok := errors.AsType[*fleet.LimitError](err)
	if !ok || !strings.Contains(limit.Message, "/api/v1/pods was answered with") {
		return "", fmt.Errorf("no limit is named: %w", err)
	}
	return err.Error(), nil
}

// pods makes Pods of 8 KiB, many at once.
func pods(t *testing.T, in client.Client, namespace string, count int) {
	t.Helper()
	names := make(chan int)
	failed := make(chan error, 16)
	for range cap(failed) {
		go func() {
			var err error
			for i := range names {
				err = errors.Join(err, in.Create(t.Context(), &corev1.Pod{
					ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("pod-%d", i), Annotations: map[string]string{"a": strings.Repeat("x", 8<<10)}},
					Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "a"}}},
				}))
			}
			failed <- err
		}()
	}
	for i := range count {
		names <- i
	}
	close(names)
	for range cap(failed) {
		must.Succeed(t, <-failed)
	}
}
