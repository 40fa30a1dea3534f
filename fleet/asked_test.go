// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-chandler/chandler/fleet"
	"github.com/cluster-chandler/chandler/fleet/fleettest"
)

var configMaps = corev1.SchemeGroupVersion.WithResource("configmaps")

// paths are those that the API server of a cluster may have in its address.
var paths = map[string]string{"no path": "", "a path": "/k8s/clusters/c-1", "a path like that of a list": "/api/v1/pods"}

// writing answers with a text, and so many KiB of spaces in it.
func writing(head string, kib int, end string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, head)
		for range kib {
			if _, err := io.WriteString(w, strings.Repeat(" ", 1<<10)); err != nil {
				return
			}
		}
		_, _ = io.WriteString(w, end)
	}
}

// TestLimitsBelowAPath holds each limit against API servers that have a path in their address, and against those without. All that
// is a bit smaller is read.
func TestLimitsBelowAPath(t *testing.T) {
	const list, end = `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"1"},`, `"items":[]}`
	const object, namespace = `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"b"}`, `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"b"}`
	const event = `{"type":"ADDED","object":{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"b"}`
	lists := func(ctx context.Context, c *fleet.Connection) error {
		_, err := c.Metadata().Resource(configMaps).List(ctx, metav1.ListOptions{})
		return err
	}
	for name, tc := range map[string]struct {
		path      string
		head, end string
		most      int // KiB
		ask       func(context.Context, *fleet.Connection) error
		discovers bool
	}{
		"an object": {path: "/api/v1/namespaces/a/configmaps/b", head: object, end: "}", most: 4096, ask: func(ctx context.Context, c *fleet.Connection) error {
			return c.Client().Get(ctx, client.ObjectKey{Namespace: "a", Name: "b"}, &corev1.ConfigMap{})
		}},
		"a namespace": {path: "/api/v1/namespaces/a", head: namespace, end: "}", most: 4096, ask: func(ctx context.Context, c *fleet.Connection) error {
			return c.Client().Get(ctx, client.ObjectKey{Name: "a"}, &corev1.Namespace{})
		}},
		"a list": {path: "/api/v1/configmaps", head: list, end: end, most: 32768, ask: lists},
		"a list with objects": {path: "/api/v1/namespaces/a/configmaps", head: `{"kind":"ConfigMapList","apiVersion":"v1",`, end: end, most: 32768, ask: func(ctx context.Context, c *fleet.Connection) error {
			return c.Client().List(ctx, &corev1.ConfigMapList{}, client.InNamespace("a"))
		}},
		"a page": {path: "/api/v1/configmaps", head: list, end: end, most: 4096, ask: func(ctx context.Context, c *fleet.Connection) error {
			return lists(fleet.WithPages(ctx), c)
		}},
		"a list in sixteen pages": {path: "/api/v1/configmaps", head: list, end: end, most: 2048, ask: func(ctx context.Context, c *fleet.Connection) error {
			var o metav1.ListOptions
			for range 16 {
				if _, err := c.Metadata().Resource(configMaps).List(ctx, o); err != nil {
					return err
				}
				o.Continue = "next"
			}
			return nil
		}},
		"a write": {path: "/api/v1/namespaces/a/configmaps", head: object, end: "}", most: 4096, ask: func(ctx context.Context, c *fleet.Connection) error {
			return c.Client().Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "b"}})
		}},
		"an event": {path: "/api/v1/configmaps", head: event, end: "}}", most: 4096, ask: func(ctx context.Context, c *fleet.Connection) error {
			seen := errors.New("no event came")
			err := c.WatchMetadata(ctx, configMaps, metav1.ListOptions{}, func(e watch.Event) {
				if seen = nil; e.Type == watch.Error {
					seen = &fleet.LimitError{Reason: fleet.ReasonResponseTooLarge, Message: e.Object.(*metav1.Status).Message}
				}
			})
			return errors.Join(err, seen)
		}},
		"a document": {path: "/apis", head: `{"kind":"APIGroupList","apiVersion":"v1","groups":[`, end: "]}", most: 2048, discovers: true, ask: func(ctx context.Context, c *fleet.Connection) error {
			c.InvalidateFacts()
			_, err := c.Facts(ctx)
			return err
		}},
	} {
		for where, below := range paths {
			t.Run(name+", "+where, func(t *testing.T) {
				kib := 0
				conn := start(t, fleet.Options{DirectReads: true}).connect(t, "a/b", below, func(r *http.Request) http.HandlerFunc {
					if r.URL.Path == tc.path && kib > 0 {
						return writing(tc.head, kib, tc.end)
					}
					return nil
				})
				if _, err := conn.Facts(t.Context()); err != nil {
					t.Fatal(err)
				}
				kib = tc.most - 4
				if err := tc.ask(t.Context(), conn); err != nil {
					t.Errorf("%d KiB: %v", kib, err)
				}
				kib = tc.most + 4
				err := tc.ask(t.Context(), conn)
				limit, ok := errors.AsType[*fleet.LimitError](err)
				if !ok || limit.Discovery != tc.discovers || !strings.Contains(limit.Message, below+tc.path) && !strings.Contains(limit.Message, fmt.Sprint(tc.most)) {
					t.Errorf("%d KiB: %v", kib, err)
				}
			})
		}
	}
}

// TestDiscoveryBelowAPath has a cluster say that it has more kinds than are read, in one document or in several.
func TestDiscoveryBelowAPath(t *testing.T) {
	for name, misbehave := range map[string]fleettest.Misbehaviour{
		"kinds":        manyKinds(6, 1000, ""),
		"documents":    manyKinds(10, 10, strings.Repeat("n", 25<<10)),
		"API versions": manyKinds(1001, 0, ""),
		"long names":   manyKinds(1, 1000, "", strings.Repeat("g", 50<<10)),
	} {
		for where, below := range paths {
			t.Run(name+", "+where, func(t *testing.T) {
				conn := start(t, fleet.Options{}).connect(t, "a/b", below, misbehave)
				_, err := conn.Facts(t.Context())
				limit, ok := errors.AsType[*fleet.LimitError](err)
				if !ok || limit.Reason != fleet.TooManyKinds || !limit.Discovery {
					t.Errorf("got %v", err)
				}
				mapped := conn.Client().Get(t.Context(), client.ObjectKey{Name: "a"}, &corev1.Namespace{})
				if _, ok := errors.AsType[*fleet.LimitError](mapped); !ok {
					t.Errorf("the client gets %v", mapped)
				}
			})
		}
	}
}

// TestRefusalsBelowAPath has a cluster refuse a request with many words, and ask to be left alone for an hour.
func TestRefusalsBelowAPath(t *testing.T) {
	for where, below := range paths {
		t.Run(where, func(t *testing.T) {
			refuses := false
			conn := start(t, fleet.Options{DirectReads: true}).connect(t, "a/b", below, func(*http.Request) http.HandlerFunc {
				if !refuses {
					return nil
				}
				return func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Content-Type", "text/plain")
					w.Header().Set("Retry-After", "3600")
					w.WriteHeader(http.StatusForbidden)
					_, _ = io.WriteString(w, strings.Repeat("x", mib))
				}
			})
			if _, err := conn.Facts(t.Context()); err != nil {
				t.Fatal(err)
			}
			refuses = true
			err := conn.Client().Get(t.Context(), client.ObjectKey{Namespace: "a", Name: "b"}, &corev1.ConfigMap{})
			refused, ok := errors.AsType[*apierrors.StatusError](err)
			if !ok {
				t.Fatalf("got %v", err)
			}
			if words, after := len(err.Error()), refused.ErrStatus.Details.RetryAfterSeconds; words > 2<<10 || after != 60 {
				t.Errorf("it has %d characters, and asks for %d seconds", words, after)
			}
		})
	}
}

// manyKinds has a cluster say, group by group, that it has so many kinds, each with a text in its name. The groups may have a text in
// their names, too.
func manyKinds(groups, kinds int, text string, group ...string) fleettest.Misbehaviour {
	prefix := "g" + strings.Join(group, "")
	return func(*http.Request) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			name, _ := strings.CutPrefix(strings.TrimSuffix(r.URL.Path, "/v1"), "/apis/")
			switch r.URL.Path {
			case "/api":
				_, _ = io.WriteString(w, `{"kind":"APIVersions","versions":["v1"]}`)
			case "/apis":
				var all []string
				for g := range groups {
					all = append(all, fmt.Sprintf(`{"name":"%s%d","versions":[{"groupVersion":"%s%d/v1","version":"v1"}]}`, prefix, g, prefix, g))
				}
				_, _ = io.WriteString(w, `{"kind":"APIGroupList","apiVersion":"v1","groups":[`+strings.Join(all, ",")+`]}`)
			case "/api/v1":
				_, _ = io.WriteString(w, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"v1","resources":[]}`)
			default:
				var all []string
				for k := range kinds {
					all = append(all, fmt.Sprintf(`{"name":"%s-%d%s","kind":"%s-%d%s"}`, name[len(prefix):], k, text, name[len(prefix):], k, text))
				}
				_, _ = io.WriteString(w, fmt.Sprintf(`{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"%s/v1","resources":[%s]}`, name, strings.Join(all, ",")))
			}
		}
	}
}
