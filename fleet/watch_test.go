// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversionscheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
)

// writeEvent writes an event as an API server does that was asked for a media type.
func writeEvent(w io.Writer, mediaType, eventType string, o runtime.Object) {
	known := metainternalversionscheme.Codecs.SupportedMediaTypes()
	info := known[slices.IndexFunc(known, func(i runtime.SerializerInfo) bool { return i.MediaType == mediaType })]
	data, err := runtime.Encode(info.Serializer, o)
	if err != nil {
		panic(err)
	}
	frames := info.StreamSerializer.NewFrameWriter(w)
	if err := info.StreamSerializer.Encode(&metav1.WatchEvent{Type: eventType, Object: runtime.RawExtension{Raw: data}}, frames); err != nil {
		panic(err)
	}
}

func named(name, version string) *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(schema.GroupVersionKind{Group: "meta.k8s.io", Version: "v1", Kind: "PartialObjectMetadata"})
	m.Name, m.ResourceVersion = name, version
	return m
}

// TestWatchMetadata gives the events of watches that end in all ways.
func TestWatchMetadata(t *testing.T) {
	status := func(err *apierrors.StatusError) *metav1.Status {
		s := err.Status()
		s.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "Status"})
		return &s
	}
	for title, tc := range map[string]struct {
		status int // of the answer, if it isn't OK
		ends   func(w http.ResponseWriter, mediaType string)
		want   string // of the last event; "" if there's none after the objects
		fails  func(error) bool
	}{
		"the server ends it": {},
		"the server has forgotten": {
			ends: func(w http.ResponseWriter, mediaType string) {
				writeEvent(w, mediaType, "ERROR", status(apierrors.NewResourceExpired("too old")))
			}, want: "Expired",
		},
		"it isn't an event":                 {ends: func(w http.ResponseWriter, _ string) { _, _ = io.WriteString(w, "\x00\x00\x00\x04<htm{") }, want: "InternalError"},
		"it ends in the middle of an event": {ends: func(w http.ResponseWriter, _ string) { _, _ = io.WriteString(w, `{"ty`) }},
		"forbidden":                         {status: http.StatusForbidden, fails: apierrors.IsForbidden},
		"the kind is gone":                  {status: http.StatusNotFound, fails: apierrors.IsNotFound},
		"it can't be watched":               {status: http.StatusMethodNotAllowed, fails: apierrors.IsMethodNotSupported},
		"the server is busy":                {status: http.StatusTooManyRequests, fails: apierrors.IsTooManyRequests},
	} {
		for _, mediaType := range []string{"application/json", "application/vnd.kubernetes.protobuf"} {
			t.Run(title+", "+mediaType, func(t *testing.T) {
				s := newServer(t)
				asked := make(chan string, 1)
				s.instead = func(w http.ResponseWriter, r *http.Request) bool {
					asked <- fmt.Sprint(r.URL, " ", r.UserAgent())
					if !strings.HasPrefix(r.Header.Get("Accept"), "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;") {
						t.Errorf("%s is asked for", r.Header.Get("Accept"))
					}
					w.Header().Set("Content-Type", mediaType+";stream=watch")
					if tc.status != 0 {
						w.WriteHeader(tc.status)
						return true
					}
					writeEvent(w, mediaType, "ADDED", named("a", "1"))
					writeEvent(w, mediaType, "DELETED", named("b", "2"))
					if tc.ends != nil {
						tc.ends(w, mediaType)
					}
					return true
				}
				f := startFleet(t, quick())
				conn := f.join(t, s)
				var events []string
				err := conn.WatchMetadata(t.Context(), schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"},
					metav1.ListOptions{LabelSelector: "x=y", ResourceVersion: "7", TimeoutSeconds: new(int64(60))}, func(e watch.Event) {
						switch o := e.Object.(type) {
						case *metav1.PartialObjectMetadata:
							events = append(events, fmt.Sprint(e.Type, " ", o.Name, " ", o.ResourceVersion))
						case *metav1.Status:
							events = append(events, string(o.Reason))
						}
					})
				if got, want := <-asked, "/apis/apps/v1/deployments?labelSelector=x%3Dy&resourceVersion=7&timeoutSeconds=60&watch=true test"; got != want {
					t.Errorf("asked %s, want %s", got, want)
				}
				if tc.fails != nil {
					if !tc.fails(err) || len(events) > 0 {
						t.Errorf("got %v, %v", err, events)
					}
					return
				}
				want := []string{"ADDED a 1", "DELETED b 2"}
				if tc.want != "" {
					want = append(want, tc.want)
				}
				if err != nil || !slices.Equal(events, want) {
					t.Errorf("got %v, %v; want %v", err, events, want)
				}
			})
		}
	}
}

// TestWatchMetadataEnds with its context, though the server continues.
func TestWatchMetadataEnds(t *testing.T) {
	s := newServer(t)
	s.instead = func(w http.ResponseWriter, r *http.Request) bool {
		w.Header().Set("Content-Type", "application/json")
		writeEvent(w, "application/json", "ADDED", named("a", "1"))
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		return true
	}
	f := startFleet(t, quick())
	conn := f.join(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	events := 0
	err := conn.WatchMetadata(ctx, configMaps, metav1.ListOptions{}, func(watch.Event) { events++; cancel() })
	if err != nil || events != 1 {
		t.Errorf("got %v after %d events", err, events)
	}
}
