// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/cluster-chandler/chandler/fleet"
)

// TestWatchesThatSendTooMuch has API servers, also below a path, send a watch more than it may get: much at its beginning, and little for
// ever. No event is larger than an object can be.
func TestWatchesThatSendTooMuch(t *testing.T) {
	event := `{"type":"ADDED","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"x","annotations":{"x":"` + strings.Repeat("y", 100<<10) + `"}}}}` + "\n"
	for name, tc := range map[string]struct{ head, block, says string }{
		"many events": {"", event, "with events of more than 64 KiB per second"},
		"one event":   {`{"type":"ADDED","object":{"a":["{\"}]`, strings.Repeat("y", 100<<10), "with an event of more than 4096 KiB"},
		"a space":     {event, strings.Repeat("\n  ", 32<<10), "with an event of more than 4096 KiB"},
	} {
		for where, below := range paths {
			t.Run(name+", "+where, func(t *testing.T) {
				conn := start(t, fleet.Options{}).connect(t, "a/b", below, func(r *http.Request) http.HandlerFunc {
					if r.URL.Query().Get("watch") == "" {
						return nil
					}
					return func(w http.ResponseWriter, _ *http.Request) {
						w.Header().Set("Content-Encoding", "gzip")
						z, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
						if err == nil {
							_, err = io.WriteString(z, tc.head)
						}
						for err == nil {
							_, err = io.WriteString(z, tc.block)
						}
					}
				})
				w, err := conn.Dynamic().Resource(configMaps).Watch(t.Context(), metav1.ListOptions{})
				if err != nil {
					t.Fatal(err)
				}
				defer w.Stop()
				events := 0
				for e := range w.ResultChan() {
					if events++; e.Type == watch.Error {
						status, ok := e.Object.(*metav1.Status)
						if !ok || !strings.Contains(status.Message, below+"/api/v1/configmaps") || !strings.Contains(status.Message, tc.says) {
							t.Errorf("got %v", e.Object)
						}
						return
					}
				}
				t.Errorf("the watch ended without an error after %d events", events)
			})
		}
	}
}

// TestListsThatHang has API servers, also below a path, take for ever for a list: neither its head nor its end may.
func TestListsThatHang(t *testing.T) {
	for name, head := range map[string]string{"before its head": "", "after its head": `{"kind":"ConfigMapList"`} {
		for where, below := range paths {
			t.Run(name+", "+where, func(t *testing.T) {
				o := fleet.Options{HeaderTimeout: 500 * time.Millisecond, ListTimeout: time.Second}
				conn := start(t, o).connect(t, "a/b", below, func(r *http.Request) http.HandlerFunc {
					if !strings.HasSuffix(r.URL.Path, "/configmaps") {
						return nil
					}
					return func(w http.ResponseWriter, r *http.Request) {
						if head != "" {
							_, _ = io.WriteString(w, head)
							w.(http.Flusher).Flush()
						}
						<-r.Context().Done()
					}
				})
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				if _, err := conn.Metadata().Resource(configMaps).List(ctx, metav1.ListOptions{}); err == nil || ctx.Err() != nil {
					t.Errorf("List() = %v, %v", err, ctx.Err())
				}
			})
		}
	}
}
