// SPDX-License-Identifier: Apache-2.0

package fleetwatch

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// kindsServed are those of an objectServer, with their resources.
var kindsServed = map[schema.GroupVersionKind]string{
	corev1.SchemeGroupVersion.WithKind("ConfigMap"):       "configmaps",
	corev1.SchemeGroupVersion.WithKind("Secret"):          "secrets",
	appsv1.SchemeGroupVersion.WithKind("Deployment"):      "deployments",
	{Group: "example.com", Version: "v1", Kind: "Widget"}: "widgets",
}

// objectServer stands for an API server: it shows the metadata of objects of a few kinds.
type objectServer struct {
	mu      sync.Mutex
	version int
	objects map[string]map[types.NamespacedName]metav1.PartialObjectMetadata // by kind
	history []objectEvent
	news    chan struct{} // closed by the next change
	// watching are the watches that are open, lists those that were answered, by kind.
	watching, lists map[string]int

	page    int                                                            // how many objects a page has, 0 for all
	oldest  int                                                            // watches from before that end with 410
	cuts    int                                                            // how often all watches have been ended
	refused map[string]int                                                 // the status for requests about a kind
	missing map[string]bool                                                // kinds that discovery doesn't tell
	moved   map[string]string                                              // other versions of kinds
	strange func(kind string, w http.ResponseWriter, r *http.Request) bool // answers in its place
}

// objectEvent is a change of an object. There is none before, or after it, if that is nil.
type objectEvent struct {
	version  int
	kind     string
	was, now *metav1.PartialObjectMetadata
}

func newObjectServer() *objectServer {
	return &objectServer{
		version: 1, objects: map[string]map[types.NamespacedName]metav1.PartialObjectMetadata{}, news: make(chan struct{}),
		watching: map[string]int{}, lists: map[string]int{}, refused: map[string]int{}, missing: map[string]bool{}, moved: map[string]string{},
	}
}

// set changes how the server behaves from now on.
func (s *objectServer) set(change func(*objectServer)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s)
	close(s.news)
	s.news = make(chan struct{})
}

// put makes or changes an object.
func (s *objectServer) put(o metav1.PartialObjectMetadata) { s.change(o, &o) }

// versionOf returns the resourceVersion of an object.
func (s *objectServer) versionOf(o metav1.PartialObjectMetadata) (version string) {
	s.set(func(s *objectServer) { version = s.objects[o.Kind][nameOf(&o)].ResourceVersion })
	return version
}

// remove deletes an object.
func (s *objectServer) remove(o metav1.PartialObjectMetadata) { s.change(o, nil) }

func (s *objectServer) change(o metav1.PartialObjectMetadata, now *metav1.PartialObjectMetadata) {
	s.set(func(s *objectServer) {
		s.version++
		if s.objects[o.Kind] == nil {
			s.objects[o.Kind] = map[types.NamespacedName]metav1.PartialObjectMetadata{}
		}
		e := objectEvent{version: s.version, kind: o.Kind, now: now}
		if was, ok := s.objects[o.Kind][nameOf(&o)]; ok {
			e.was = &was
		}
		delete(s.objects[o.Kind], nameOf(&o))
		if now != nil {
			now.ResourceVersion = strconv.Itoa(s.version)
			s.objects[o.Kind][nameOf(&o)] = *now
		}
		s.history = append(s.history, e)
	})
}

// refuse answers requests about a kind with a status, and ends its watches; 0 answers again.
func (s *objectServer) refuse(kind string, status int) {
	s.set(func(s *objectServer) { s.refused[kind] = status })
}

// cut ends all watches. If the server forgets what was before, they can't be taken up again.
func (s *objectServer) cut(forgets bool) {
	s.set(func(s *objectServer) {
		s.cuts++
		if forgets {
			s.version++
			s.oldest, s.history = s.version, nil
		}
	})
}

// count reads a number of one of the kinds.
func (s *objectServer) count(of map[string]int, kind string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return of[kind]
}

func (s *objectServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	groups := &metav1.APIGroupList{}
	served := map[string]*metav1.APIResourceList{"/api/v1": {GroupVersion: "v1"}}
	kind := ""
	for gvk, resource := range kindsServed {
		if s.missing[gvk.Kind] {
			continue
		}
		if version := s.moved[gvk.Kind]; version != "" {
			gvk.Version = version
		}
		path, version := "/apis/"+gvk.GroupVersion().String(), metav1.GroupVersionForDiscovery{GroupVersion: gvk.GroupVersion().String(), Version: gvk.Version}
		if gvk.Group == "" {
			path = "/api/v1"
		} else if served[path] == nil {
			served[path] = &metav1.APIResourceList{GroupVersion: version.GroupVersion}
			groups.Groups = append(groups.Groups, metav1.APIGroup{Name: gvk.Group, Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version})
		}
		served[path].APIResources = append(served[path].APIResources, metav1.APIResource{Name: resource, Kind: gvk.Kind, Namespaced: true, Verbs: []string{"list", "watch"}})
		if r.URL.Path == path+"/"+resource {
			kind = gvk.Kind
		}
	}
	status, strange := s.refused[kind], s.strange
	s.mu.Unlock()
	selector, err := labels.Parse(r.URL.Query().Get("labelSelector"))
	switch path := r.URL.Path; {
	case path == "/api":
		_ = json.NewEncoder(w).Encode(metav1.APIVersions{Versions: []string{"v1"}})
	case path == "/apis":
		_ = json.NewEncoder(w).Encode(groups)
	case served[path] != nil:
		_ = json.NewEncoder(w).Encode(served[path])
	case strange != nil && strange(kind, w, r):
	case status != 0:
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(statusOf(status))
	case kind == "", err != nil:
		w.WriteHeader(http.StatusNotFound)
		_ = json.NewEncoder(w).Encode(statusOf(http.StatusNotFound))
	case watches(r):
		s.serveWatch(w, r, kind, selector)
	default:
		s.serveList(w, r, kind, selector)
	}
}

// statusOf is what an API server says with a status.
func statusOf(code int) *metav1.Status {
	reasons := map[int]metav1.StatusReason{
		http.StatusForbidden: metav1.StatusReasonForbidden, http.StatusNotFound: metav1.StatusReasonNotFound,
		http.StatusMethodNotAllowed: metav1.StatusReasonMethodNotAllowed, http.StatusGone: metav1.StatusReasonExpired,
		http.StatusInternalServerError: metav1.StatusReasonInternalError,
	}
	return &metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: int32(code), Reason: reasons[code], Message: http.StatusText(code)}
}

// serveList answers with a page of what is selected, in the order of names.
func (s *objectServer) serveList(w io.Writer, r *http.Request, kind string, selector labels.Selector) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var selected []metav1.PartialObjectMetadata
	for _, o := range s.objects[kind] {
		if selector.Matches(labels.Set(o.Labels)) {
			selected = append(selected, o)
		}
	}
	slices.SortFunc(selected, func(a, b metav1.PartialObjectMetadata) int { return strings.Compare(a.Name, b.Name) })
	from, _ := strconv.Atoi(r.URL.Query().Get("continue"))
	list := &metav1.PartialObjectMetadataList{Items: selected[from:]}
	if s.page > 0 && len(list.Items) > s.page {
		list.Items, list.Continue = list.Items[:s.page], strconv.Itoa(from+s.page)
	}
	list.APIVersion, list.Kind, list.ResourceVersion = "meta.k8s.io/v1", "PartialObjectMetadataList", strconv.Itoa(s.version)
	_ = json.NewEncoder(w).Encode(list)
	s.lists[kind]++
}

// serveWatch sends what changed since a version, until the watch is ended.
func (s *objectServer) serveWatch(w http.ResponseWriter, r *http.Request, kind string, selector labels.Selector) {
	from, _ := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	w.(http.Flusher).Flush()
	s.mu.Lock()
	cuts, expired := s.cuts, from < s.oldest
	s.watching[kind]++
	s.mu.Unlock()
	defer s.set(func(s *objectServer) { s.watching[kind]-- })
	if expired {
		_ = json.NewEncoder(w).Encode(map[string]any{"type": "ERROR", "object": statusOf(http.StatusGone)})
		return
	}
	for {
		s.mu.Lock()
		over, news := s.cuts != cuts || s.refused[kind] != 0, s.news
		due := slices.DeleteFunc(slices.Clone(s.history), func(e objectEvent) bool { return e.kind != kind || e.version <= from })
		from = max(from, s.version)
		s.mu.Unlock()
		if over {
			return
		}
		for _, e := range due {
			send(w, e, selector)
		}
		w.(http.Flusher).Flush()
		select {
		case <-news:
		case <-r.Context().Done():
			return
		}
	}
}

// send writes an event as it looks through a selector.
func send(w io.Writer, e objectEvent, selector labels.Selector) {
	matches := func(o *metav1.PartialObjectMetadata) bool { return o != nil && selector.Matches(labels.Set(o.Labels)) }
	switch {
	case matches(e.was) && matches(e.now):
		_ = writeEvent(w, "MODIFIED", *e.now)
	case matches(e.now):
		_ = writeEvent(w, "ADDED", *e.now)
	case matches(e.was):
		gone := *e.was
		gone.ResourceVersion = strconv.Itoa(e.version)
		_ = writeEvent(w, "DELETED", gone)
	}
}
