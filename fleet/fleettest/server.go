// SPDX-License-Identifier: Apache-2.0

package fleettest

import (
	"cmp"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"
)

// Server is an API server over TLS that takes whatever is written, and shows Secrets of it to those
// that watch them. It has Secrets, ConfigMaps, Namespaces and CustomResourceDefinitions, and lists none.
type Server struct {
	*httptest.Server
	// Misbehaved counts the requests that were answered by the Misbehaviour.
	Misbehaved atomic.Int32
	// Remembers has the server show the Secrets that were written to those that list or read them.
	Remembers atomic.Bool
	// Version is what the server says its version is, "v1.36.3" by default.
	Version atomic.Pointer[string]

	misbehave Misbehaviour
	versions  atomic.Int64

	mu       sync.Mutex
	requests map[string]int                       // by method and path
	secrets  map[string]unstructured.Unstructured // by path
	events   []event
	more     chan struct{} // closed when there are more of them
}

// event is one of a watch of Secrets.
type event struct {
	labels labels.Set
	json   string
}

// Misbehaviour returns what answers a request; nil if the request is to be answered well.
type Misbehaviour func(r *http.Request) http.HandlerFunc

// Start runs a Server until the test ends.
func Start(t testing.TB, misbehave Misbehaviour) *Server {
	t.Helper()
	s := &Server{misbehave: misbehave, requests: map[string]int{}, secrets: map[string]unstructured.Unstructured{}, more: make(chan struct{})}
	s.Server = httptest.NewUnstartedServer(s)
	s.EnableHTTP2 = true
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s
}

// Kubeconfig returns one for the server.
func (s *Server) Kubeconfig(t testing.TB) []byte {
	t.Helper()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	return Kubeconfig(s.URL, ca, &clientcmdapi.AuthInfo{Token: "t"})
}

// Requests counts the requests whose method and path begin and end so, such as "POST " and "/secrets".
func (s *Server) Requests(begin, end string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for request, times := range s.requests {
		if strings.HasPrefix(request, begin) && strings.HasSuffix(request, end) {
			n += times
		}
	}
	return n
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.requests[r.Method+" "+r.URL.Path]++
	s.mu.Unlock()
	if r.URL.Path == "/version" {
		fmt.Fprintf(w, `{"gitVersion":%q}`, ptr.Deref(s.Version.Load(), "v1.36.3"))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if answer := s.misbehave(r); answer != nil {
		s.Misbehaved.Add(1)
		answer(w, r)
		return
	}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	last := parts[len(parts)-1]
	switch {
	case len(parts) == 1:
		discover(w, last)
	case isWatch(r):
		s.watch(w, r, last == "secrets")
	case r.Method != http.MethodGet:
		s.echo(w, r, last)
	case s.Remembers.Load() && strings.Contains(r.URL.Path, "/secrets"):
		s.showSecrets(w, r)
	case last == "secrets" || last == "configmaps" || last == "customresourcedefinitions":
		_, _ = io.WriteString(w, `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"1"},"items":[]}`)
	case len(parts) == 4 && parts[2] == "namespaces":
		fmt.Fprintf(w, `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":%q,"uid":"n","resourceVersion":"1"},"status":{"phase":"Active"}}`, last)
	default:
		notFound(w)
	}
}

func notFound(w http.ResponseWriter) {
	w.WriteHeader(http.StatusNotFound)
	_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`)
}

func isWatch(r *http.Request) bool { return r.URL.Query().Get("watch") != "" }

// discover writes the kinds of the server.
func discover(w http.ResponseWriter, root string) {
	const extensions = "apiextensions.k8s.io"
	kind := func(group, resource, kind, scope string) string {
		return fmt.Sprintf(`{"resource":%q,"scope":%q,`, resource, scope) +
			fmt.Sprintf(`"responseKind":{"group":%q,"version":"v1","kind":%q},`, group, kind) +
			`"verbs":["create","delete","get","list","patch","update","watch"]}`
	}
	group, kinds := "", []string{
		kind("", "secrets", "Secret", "Namespaced"), kind("", "configmaps", "ConfigMap", "Namespaced"),
		kind("", "namespaces", "Namespace", "Cluster"),
	}
	if root == "apis" {
		group = extensions
		kinds = []string{kind(group, "customresourcedefinitions", "CustomResourceDefinition", "Cluster")}
	}
	w.Header().Set("Content-Type", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
	fmt.Fprintf(w, `{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","items":[`+
		`{"metadata":{"name":%q},"versions":[{"version":"v1","resources":[%s]}]}]}`, group, strings.Join(kinds, ","))
}

// watch sends the Secrets that were written and are asked for, until nobody listens.
func (s *Server) watch(w http.ResponseWriter, r *http.Request, secrets bool) {
	selector, err := labels.Parse(r.URL.Query().Get("labelSelector"))
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	for sent := 0; ; {
		w.(http.Flusher).Flush()
		s.mu.Lock()
		events, more := s.events[sent:], s.more
		s.mu.Unlock()
		for _, e := range events {
			if secrets && selector.Matches(e.labels) {
				_, _ = io.WriteString(w, e.json)
			}
		}
		w.(http.Flusher).Flush()
		sent += len(events)
		select {
		case <-more:
		case <-r.Context().Done():
			return
		}
	}
}

// showSecrets shows a Secret that was written, or the metadata of those that are selected.
func (s *Server) showSecrets(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if secret, ok := s.secrets[r.URL.Path]; ok {
		_ = json.NewEncoder(w).Encode(secret.Object)
		return
	}
	selector, err := labels.Parse(r.URL.Query().Get("labelSelector"))
	if err != nil || !strings.HasSuffix(r.URL.Path, "/secrets") {
		notFound(w)
		return
	}
	items := []any{}
	for _, path := range slices.Sorted(maps.Keys(s.secrets)) {
		secret := s.secrets[path]
		if strings.HasPrefix(path, strings.TrimSuffix(r.URL.Path, "secrets")) && selector.Matches(labels.Set(secret.GetLabels())) {
			items = append(items, map[string]any{"metadata": secret.Object["metadata"]})
		}
	}
	_ = json.NewEncoder(w).Encode(map[string]any{
		"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "items": items,
		"metadata": map[string]any{"resourceVersion": fmt.Sprint(100 + s.versions.Load())},
	})
}

// keep notes a Secret for those that watch, list or read.
func (s *Server) keep(secret unstructured.Unstructured) {
	data, _ := json.Marshal(map[string]any{"type": "ADDED", "object": map[string]any{
		"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": secret.Object["metadata"],
	}})
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Remembers.Load() {
		s.secrets[fmt.Sprintf("/api/v1/namespaces/%s/secrets/%s", secret.GetNamespace(), secret.GetName())] = secret
	}
	s.events = append(s.events, event{labels: secret.GetLabels(), json: string(data) + "\n"})
	close(s.more)
	s.more = make(chan struct{})
}

// echo answers a write as if it was stored.
func (s *Server) echo(w http.ResponseWriter, r *http.Request, last string) {
	body, _ := io.ReadAll(r.Body)
	stored := map[string]any{}
	if obj, kind, err := clientgoscheme.Codecs.UniversalDeserializer().Decode(body, nil, nil); err == nil {
		stored, _ = runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
		stored["apiVersion"], stored["kind"] = kind.GroupVersion().String(), kind.Kind
	} else if yaml.Unmarshal(body, &stored) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	o := unstructured.Unstructured{Object: stored}
	version := fmt.Sprint(100 + s.versions.Add(1))
	o.SetName(cmp.Or(o.GetName(), last))
	o.SetUID(cmp.Or(o.GetUID(), types.UID("uid-"+version)))
	o.SetResourceVersion(version)
	o.SetCreationTimestamp(metav1.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	if o.GetKind() == "Secret" {
		s.keep(o)
	}
	if r.Method == http.MethodPost {
		w.WriteHeader(http.StatusCreated)
	}
	_ = json.NewEncoder(w).Encode(o.Object)
}
