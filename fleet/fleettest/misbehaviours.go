// SPDX-License-Identifier: Apache-2.0

// Package fleettest has what providers of clusters are tested with: an API server that misbehaves
// on demand, and the cases that each provider for multicluster-runtime has to pass.
package fleettest

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Misbehaviours returns what a server may do wrong, by names that fit objects. Path is that of the
// list and watch by which a client looks at the server, such as "/api/v1/secrets".
func Misbehaviours(path string) map[string]Misbehaviour {
	watched := func(r *http.Request) bool { return r.URL.Path == path }
	listing := func(r *http.Request) bool { return watched(r) && !isWatch(r) }
	watching := func(r *http.Request) bool { return watched(r) && isWatch(r) }
	kinds := func(r *http.Request) bool {
		return strings.HasSuffix(r.URL.Path, "/customresourcedefinitions") && isWatch(r)
	}
	when := func(is func(*http.Request) bool, do http.HandlerFunc) Misbehaviour {
		return func(r *http.Request) http.HandlerFunc {
			if is(r) {
				return do
			}
			return nil
		}
	}
	spaces, empty := strings.Repeat(" ", 1<<20), strings.Repeat("{},", 1<<18)
	groups := manyGroups(5_000)
	event := func(name string) string {
		return fmt.Sprintf(`{"type":"ADDED","object":{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":%q,"namespace":"x","uid":%q,"resourceVersion":"2","annotations":{"addons.cluster.x-k8s.io/digest":"%s"}}}}`+"\n",
			name, name, strings.Repeat("x", 4000))
	}
	item := `{"metadata":{"name":"x","namespace":"x","annotations":{"x":"` + strings.Repeat("y", 1<<18) + `"}}}`
	head := `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"1","continue":"x"},"items":[`
	return map[string]Misbehaviour{
		"bomb": when(func(r *http.Request) bool { return r.URL.Path == "/api" }, func(w http.ResponseWriter, _ *http.Request) {
			endless(w, `{"kind":"APIVersions"`, func(int) string { return spaces })
		}),
		"endless-list": when(listing, func(w http.ResponseWriter, _ *http.Request) {
			endless(w, head, func(int) string { return item + "," })
		}),
		"empty-objects": when(listing, func(w http.ResponseWriter, _ *http.Request) {
			endless(w, head, func(int) string { return empty })
		}),
		"endless-pages": when(listing, func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, head+item+`]}`)
		}),
		"endless-events": when(watching, func(w http.ResponseWriter, _ *http.Request) {
			endless(w, "", func(i int) string { return event(strconv.Itoa(i)) })
		}),
		"one-event": when(watching, func(w http.ResponseWriter, _ *http.Request) {
			endless(w, `{"type":"ADDED","object":{"metadata":{"name":"`, func(int) string { return item[60:1000] })
		}),
		"many-groups": when(func(r *http.Request) bool { return strings.Count(r.URL.Path, "/") == 1 }, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/apis" {
				_, _ = io.WriteString(w, groups)
				return
			}
			_, _ = io.WriteString(w, `{"kind":"APIVersions","versions":["v1"]}`)
		}),
		"retry-after": when(listing, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "1000000")
			w.WriteHeader(http.StatusTooManyRequests)
		}),
		"hangs": when(listing, func(w http.ResponseWriter, r *http.Request) {
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}),
		"trickles": when(listing, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, head)
			each(r, 100*time.Millisecond, func(int) { _, _ = io.WriteString(w, " "); w.(http.Flusher).Flush() })
		}),
		"unauthorized": when(func(*http.Request) bool { return true }, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusUnauthorized)
		}),
		"forgets": when(watching, func(w http.ResponseWriter, r *http.Request) {
			each(r, 20*time.Millisecond, func(int) { _, _ = io.WriteString(w, event("x")); w.(http.Flusher).Flush() })
		}),
		"changes-kinds": when(kinds, func(w http.ResponseWriter, r *http.Request) {
			each(r, 20*time.Millisecond, func(i int) { _, _ = io.WriteString(w, event(strconv.Itoa(i))); w.(http.Flusher).Flush() })
		}),
		"slow": when(func(r *http.Request) bool { return !watched(r) && strings.Count(r.URL.Path, "/") > 1 }, func(w http.ResponseWriter, r *http.Request) {
			select {
			case <-r.Context().Done():
			case <-time.After(11 * time.Second):
				w.WriteHeader(http.StatusInternalServerError)
			}
		}),
	}
}

// endless writes, compressed, until nobody reads.
func endless(w http.ResponseWriter, head string, next func(i int) string) {
	w.Header().Set("Content-Encoding", "gzip")
	z, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
	if err == nil {
		_, err = io.WriteString(z, head)
	}
	for i := 0; err == nil; i++ {
		_, err = io.WriteString(z, next(i))
	}
}

// each does something again and again, as long as somebody reads.
func each(r *http.Request, pause time.Duration, do func(i int)) {
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for i := 0; ; i++ {
		select {
		case <-r.Context().Done():
			return
		case <-tick.C:
			do(i)
		}
	}
}

// manyGroups is what a server says that doesn't aggregate its discovery.
func manyGroups(n int) string {
	groups := make([]string, n)
	for i := range groups {
		groups[i] = fmt.Sprintf(`{"name":"g%d","versions":[{"groupVersion":"g%d/v1","version":"v1"}]}`, i, i)
	}
	return `{"kind":"APIGroupList","apiVersion":"v1","groups":[` + strings.Join(groups, ",") + `]}`
}
