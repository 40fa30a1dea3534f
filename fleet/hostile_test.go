// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/pager"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-chandler/chandler/fleet/internal/transport"
)

var configMaps = corev1.SchemeGroupVersion.WithResource("configmaps")

// hostileServer answers all but probes with a function, compressed.
func hostileServer(t *testing.T, o Options, answer func(w io.Writer, r *http.Request)) (*fleetTest, *Connection) {
	t.Helper()
	f, s := startFleet(t, o), newServer(t)
	s.instead = func(w http.ResponseWriter, r *http.Request) bool {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Encoding", "gzip")
		z, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
		if err != nil {
			t.Error(err)
		}
		answer(z, r)
		_ = z.Close()
		return true
	}
	return f, f.join(t, s)
}

// endless writes a head, and then a block until nobody listens.
func endless(w io.Writer, head string, block []byte) {
	_, err := io.WriteString(w, head)
	for err == nil {
		_, err = w.Write(block)
	}
}

// What is larger than any answer that is needed ends with an error of its own, that
// names the request.
func TestAnswersThatAreTooLarge(t *testing.T) {
	spaces := bytes.Repeat([]byte(" "), 1<<20)
	for name, tc := range map[string]struct {
		answer func(w io.Writer, r *http.Request)
		ask    func(ctx context.Context, c *Connection) error
		want   LimitError
	}{
		"a discovery document": {
			func(w io.Writer, _ *http.Request) { endless(w, `{"kind":"APIVersions"`, spaces) },
			func(ctx context.Context, c *Connection) error { _, err := c.Facts(ctx); return err },
			LimitError{Message: "GET /api was answered with more than 4096 KiB", Discovery: true},
		},
		"the discovery of a client": {
			func(w io.Writer, _ *http.Request) { endless(w, `{"kind":"APIVersions"`, spaces) },
			func(ctx context.Context, c *Connection) error {
				return c.Client().Get(ctx, client.ObjectKey{Namespace: "a", Name: "b"}, &corev1.Pod{})
			},
			LimitError{Message: "GET /api was answered with more than 4096 KiB", Discovery: true},
		},
		"an object": {
			func(w io.Writer, _ *http.Request) { endless(w, `{"kind":"ConfigMap"`, spaces) },
			func(ctx context.Context, c *Connection) error {
				_, err := c.Dynamic().Resource(configMaps).Namespace("a").Get(ctx, "b", metav1.GetOptions{})
				return err
			},
			LimitError{Message: "GET /api/v1/namespaces/a/configmaps/b was answered with more than 4096 KiB"},
		},
		"the answer to a write": {
			func(w io.Writer, _ *http.Request) { endless(w, `{"kind":"ConfigMap"`, spaces) },
			func(ctx context.Context, c *Connection) error {
				u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
				_, err := c.Dynamic().Resource(configMaps).Namespace("a").Create(ctx, u, metav1.CreateOptions{})
				return err
			},
			LimitError{Message: "POST /api/v1/namespaces/a/configmaps was answered with more than 4096 KiB"},
		},
		"the answer to the write of a Secret": {
			func(w io.Writer, _ *http.Request) { endless(w, `{"kind":"PartialObjectMetadata"`, spaces) },
			func(ctx context.Context, c *Connection) error {
				return c.Secrets().Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "b"}})
			},
			LimitError{Message: "POST /api/v1/namespaces/a/secrets was answered with more than 4096 KiB"},
		},
		"a list": {
			func(w io.Writer, _ *http.Request) { endless(w, `{"kind":"ConfigMapList","items":[`, spaces) },
			func(ctx context.Context, c *Connection) error {
				_, err := c.Dynamic().Resource(configMaps).List(ctx, metav1.ListOptions{})
				return err
			},
			LimitError{Message: "GET /api/v1/configmaps was answered with more than 32768 KiB"},
		},
		"a list with pages without end": {
			func(w io.Writer, _ *http.Request) {
				_, _ = io.WriteString(w, `{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"1","continue":"x"},"items":[]}`)
			},
			func(ctx context.Context, c *Connection) error {
				return pager.New(func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
					return c.Dynamic().Resource(configMaps).List(ctx, o)
				}).EachListItem(ctx, metav1.ListOptions{}, func(runtime.Object) error { return nil })
			},
			LimitError{Message: "GET /api/v1/configmaps was answered with more than 32768 KiB"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := quick()
			o.QPS, o.Burst, o.Timeout = 1e6, 1e6, patience
			_, conn := hostileServer(t, o, tc.answer)
			err := tc.ask(t.Context(), conn)
			limit, ok := errors.AsType[*LimitError](err)
			tc.want.Reason = ReasonResponseTooLarge
			if !ok || *limit != tc.want {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestRetryAfterIsShortened(t *testing.T) {
	f, s := startFleet(t, quick()), newServer(t)
	var asked atomic.Value
	s.instead = func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Retry-After", asked.Load().(string))
		w.WriteHeader(http.StatusTooManyRequests)
		return true
	}
	conn := f.join(t, s)
	for after, want := range map[string]string{"1000000": "60", "60": "60", "1": "1", "tomorrow": "tomorrow"} {
		asked.Store(after)
		_, header := get(t, conn, s.URL+"/api/v1/secrets")
		if got := header.Get("Retry-After"); got != want {
			t.Errorf("%s became %s", after, got)
		}
	}
}

// manyGroups is what a server says that doesn't aggregate its discovery.
func manyGroups(n int) string {
	groups := make([]string, n)
	for i := range groups {
		groups[i] = fmt.Sprintf(`{"name":"g%d","versions":[{"groupVersion":"g%d/v1","version":"v1"}]}`, i, i)
	}
	return `{"kind":"APIGroupList","apiVersion":"v1","versions":[1],"groups":[` + strings.Join(groups, ",") + `]}`
}

func TestTooManyKinds(t *testing.T) {
	var asked atomic.Int32
	groups := manyGroups(5_000)
	_, conn := hostileServer(t, quick(), func(w io.Writer, r *http.Request) {
		answer := groups
		if asked.Add(1); r.URL.Path == "/api" {
			answer = `{"kind":"APIVersions","versions":["v1"]}`
		}
		_, _ = io.WriteString(w, answer)
	})
	_, ofFacts := conn.Facts(t.Context())
	ofClient := conn.Client().Get(t.Context(), client.ObjectKey{Namespace: "a", Name: "b"}, &corev1.Pod{})
	for _, err := range []error{ofFacts, ofClient} {
		if limit, ok := errors.AsType[*LimitError](err); !ok || limit.Reason != TooManyKinds {
			t.Errorf("got %v", err)
		}
	}
	if n := asked.Load(); n > 4 {
		t.Errorf("%d requests", n)
	}
}

// A discovery that takes one request for each API version ends when nobody waits for it any more,
// and when the cluster is gone.
func TestDiscoveryEnds(t *testing.T) {
	for name, end := range map[string]func(f *fleetTest, cancel func()){
		"with its context": func(_ *fleetTest, cancel func()) { cancel() },
		"with the cluster": func(f *fleetTest, _ func()) { f.Remove("a/b") },
	} {
		t.Run(name, func(t *testing.T) {
			begun, groups := make(chan struct{}, 1000), manyGroups(1000-1)
			var asked atomic.Int32
			o := quick()
			o.QPS, o.Burst = 10, 10
			f, conn := hostileServer(t, o, func(w io.Writer, r *http.Request) {
				asked.Add(1)
				switch r.URL.Path {
				case "/api":
					_, _ = io.WriteString(w, `{"kind":"APIVersions","versions":["v1"]}`)
				case "/apis":
					_, _ = io.WriteString(w, groups)
				default:
					_, _ = io.WriteString(w, `{"kind":"APIResourceList","apiVersion":"v1","resources":[]}`)
					begun <- struct{}{}
				}
			})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ended := make(chan error, 1)
			go func() { _, err := conn.Facts(ctx); ended <- err }()
			select {
			case <-begun:
			case err := <-ended:
				t.Fatal(err)
			}
			end(f, cancel)
			select {
			case err := <-ended:
				if n := asked.Load(); err == nil || n > 100 {
					t.Errorf("Facts() = %v after %d requests", err, n)
				}
			case <-time.After(patience):
				t.Errorf("the discovery continues:\n%s", stacks())
			}
		})
	}
}

// A client of a cluster that is gone sends nothing, with nobody's credentials.
func TestRemovedClusterGetsNoRequest(t *testing.T) {
	f, s := startFleet(t, quick()), newServer(t)
	conn := f.join(t, s)
	get := func() error {
		return conn.Client().Get(t.Context(), client.ObjectKey{Namespace: "a", Name: "x"}, &corev1.Pod{})
	}
	if err := client.IgnoreNotFound(get()); err != nil {
		t.Fatal(err)
	}
	f.Remove("a/b")
	<-conn.Done()
	await(t, "a GET is answered", func() bool { return client.IgnoreNotFound(get()) != nil })
	before, conns := s.requests.Load(), s.conns.Load()
	if _, err := conn.Facts(t.Context()); err == nil {
		conn.InvalidateFacts()
		if _, err = conn.Facts(t.Context()); err == nil {
			t.Error("a discovery was answered")
		}
	}
	if _, err := conn.Dynamic().Resource(configMaps).Watch(t.Context(), metav1.ListOptions{}); err == nil {
		t.Error("a watch was answered")
	}
	if n := s.requests.Load(); n != before {
		t.Errorf("%d requests after the end", n-before)
	}
	if n := s.conns.Load(); n != conns {
		t.Errorf("%d TCP connections after the end", n-conns)
	}
}

// A probe that ends late says nothing of the connection that came after it.
func TestProbeOfAFormerConnection(t *testing.T) {
	l := &link{provider: NewProvider(Options{}), probed: make(chan attemptResult, 1), conn: &Connection{}}
	l.machine = machine{options: l.provider.options, wanted: "new", using: "new", probing: true}
	l.probed <- attemptResult{conn: &Connection{}, fault: &transport.Fault{Reason: ReasonUnauthorized}}
	l.step(t.Context(), time.Time{})
	if m := l.machine; m.denied || m.missed != 0 || m.probing || m.using != "new" {
		t.Errorf("%+v", m)
	}
}

// Who deletes the Secret to revoke access has to see that the connection continues.
func TestConnectedWithoutAKubeconfig(t *testing.T) {
	f, s := startFleet(t, quick()), newServer(t)
	f.join(t, s)
	f.add("a/b", nil)
	state := f.expect(t, "a/b", PhaseConnected, ReasonKubeconfigMissing)
	if _, ok := f.Connection("a/b"); !ok || !strings.Contains(state.Message, "Secret a/b-kubeconfig is missing") {
		t.Errorf("%+v, connected: %v", state, ok)
	}
	f.Set("a/b", Member{ID: "1", Origin: "Secret a/b-kubeconfig", Problem: "has no key value"})
	f.expect(t, "a/b", PhaseConnected, ReasonKubeconfigUnreadable)
	f.join(t, s)
}
