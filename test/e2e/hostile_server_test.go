// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/yaml"
)

// hostileServer is an API server that takes whatever is written, and shows of it release
// records to those that watch them. It misbehaves in one way.
type hostileServer struct {
	*httptest.Server
	misbehave  misbehaviour
	misbehaved atomic.Int32
	// discoveries are the requests for /apis.
	discoveries atomic.Int32

	mu      sync.Mutex
	written map[string]int // by method and path
	records []string       // events
	more    chan struct{}  // closed when there are more of them
}

// misbehaviour returns what answers a request; nil if that is to be answered well.
type misbehaviour func(r *http.Request) http.HandlerFunc

func startHostile(t *testing.T, misbehave misbehaviour) *hostileServer {
	t.Helper()
	s := &hostileServer{misbehave: misbehave, written: map[string]int{}, more: make(chan struct{})}
	s.Server = httptest.NewUnstartedServer(s)
	s.EnableHTTP2 = true
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s
}

func (s *hostileServer) kubeconfig(t *testing.T) []byte {
	t.Helper()
	data, err := clientcmd.Write(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{"c": {
			Server: s.URL, CertificateAuthorityData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}),
		}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"u": {Token: "t"}},
		Contexts:       map[string]*clientcmdapi.Context{"x": {Cluster: "c", AuthInfo: "u"}},
		CurrentContext: "x",
	})
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// writes counts the requests that wrote to a path that ends so.
func (s *hostileServer) writes(method, end string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for written, times := range s.written {
		if strings.HasPrefix(written, method+" ") && strings.HasSuffix(written, end) {
			n += times
		}
	}
	return n
}

// ServeHTTP implements http.Handler.
func (s *hostileServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/version" {
		_, _ = io.WriteString(w, `{"gitVersion":"v1.36.3"}`)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if answer := s.misbehave(r); answer != nil {
		s.misbehaved.Add(1)
		answer(w, r)
		return
	}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	last := parts[len(parts)-1]
	switch {
	case len(parts) == 1:
		if last == "apis" {
			s.discoveries.Add(1)
		}
		discover(w, last)
	case isWatch(r):
		s.watch(w, r, last == "secrets")
	case r.Method != http.MethodGet:
		s.mu.Lock()
		s.written[r.Method+" "+r.URL.Path]++
		s.mu.Unlock()
		s.echo(w, r, last)
	case last == "secrets" || last == "configmaps" || last == "customresourcedefinitions":
		emptyList(w)
	case len(parts) == 4 && parts[2] == "namespaces":
		fmt.Fprintf(w, `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":%q,"uid":"n","resourceVersion":"1"},"status":{"phase":"Active"}}`, last)
	default:
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`)
	}
}

func isWatch(r *http.Request) bool { return r.URL.Query().Get("watch") != "" }

func emptyList(w io.Writer) {
	_, _ = io.WriteString(w, `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"1"},"items":[]}`)
}

// discover writes the kinds of the server.
func discover(w http.ResponseWriter, root string) {
	kind := func(group, resource, kind string, scope apidiscoveryv2.ResourceScope) apidiscoveryv2.APIResourceDiscovery {
		return apidiscoveryv2.APIResourceDiscovery{
			Resource: resource, Scope: scope, Verbs: []string{"create", "delete", "get", "list", "patch", "update", "watch"},
			ResponseKind: &metav1.GroupVersionKind{Group: group, Version: "v1", Kind: kind},
		}
	}
	group := func(name string, resources ...apidiscoveryv2.APIResourceDiscovery) apidiscoveryv2.APIGroupDiscovery {
		return apidiscoveryv2.APIGroupDiscovery{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Versions:   []apidiscoveryv2.APIVersionDiscovery{{Version: "v1", Resources: resources}},
		}
	}
	const extensions = "apiextensions.k8s.io"
	all := map[string]apidiscoveryv2.APIGroupDiscovery{
		"api": group("", kind("", "secrets", "Secret", apidiscoveryv2.ScopeNamespace),
			kind("", "configmaps", "ConfigMap", apidiscoveryv2.ScopeNamespace), kind("", "namespaces", "Namespace", apidiscoveryv2.ScopeCluster)),
		"apis": group(extensions, kind(extensions, "customresourcedefinitions", "CustomResourceDefinition", apidiscoveryv2.ScopeCluster)),
	}
	w.Header().Set("Content-Type", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
	_ = json.NewEncoder(w).Encode(apidiscoveryv2.APIGroupDiscoveryList{
		TypeMeta: metav1.TypeMeta{APIVersion: "apidiscovery.k8s.io/v2", Kind: "APIGroupDiscoveryList"},
		Items:    []apidiscoveryv2.APIGroupDiscovery{all[root]},
	})
}

var versions atomic.Int64

// watch sends the records that were written, until nobody listens.
func (s *hostileServer) watch(w http.ResponseWriter, r *http.Request, secrets bool) {
	for sent := 0; ; {
		w.(http.Flusher).Flush()
		s.mu.Lock()
		events, more := s.records[sent:], s.more
		s.mu.Unlock()
		if secrets {
			_, _ = io.WriteString(w, strings.Join(events, ""))
			w.(http.Flusher).Flush()
		}
		sent += len(events)
		select {
		case <-more:
		case <-r.Context().Done():
			return
		}
	}
}

// keep notes a record for those that watch.
func (s *hostileServer) keep(metadata map[string]any) {
	labels, _ := metadata["labels"].(map[string]any)
	if labels["owner"] != "helm" {
		return
	}
	event, _ := json.Marshal(map[string]any{"type": "ADDED", "object": map[string]any{"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata}})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.records = append(s.records, string(event)+"\n")
	close(s.more)
	s.more = make(chan struct{})
}

// echo answers a write as if it was stored.
func (s *hostileServer) echo(w http.ResponseWriter, r *http.Request, last string) {
	body, _ := io.ReadAll(r.Body)
	stored := map[string]any{}
	if obj, kind, err := clientgoscheme.Codecs.UniversalDeserializer().Decode(body, nil, nil); err == nil {
		stored, _ = runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
		stored["apiVersion"], stored["kind"] = kind.GroupVersion().String(), kind.Kind
	} else if yaml.Unmarshal(body, &stored) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	metadata, _ := stored["metadata"].(map[string]any)
	if metadata == nil {
		metadata = map[string]any{"name": last}
	}
	version := fmt.Sprint(100 + versions.Add(1))
	if metadata["uid"] == nil {
		metadata["uid"] = "uid-" + version
	}
	metadata["resourceVersion"], metadata["creationTimestamp"] = version, "2026-01-01T00:00:00Z"
	stored["metadata"] = metadata
	s.keep(metadata)
	if r.Method == http.MethodPost {
		w.WriteHeader(http.StatusCreated)
	}
	_ = json.NewEncoder(w).Encode(stored)
}
