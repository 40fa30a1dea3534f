// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/test/pki"
)

// TestAnswerWithoutUID has a cluster that answers writes of records without metadata.uid.
// It says what is wrong, and other clusters are served, before and after.
func TestAnswerWithoutUID(t *testing.T) {
	t.Parallel()
	tn := newTenant(t)
	fake := startFake(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case empty(w, r):
		case r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/secrets"):
			w.WriteHeader(http.StatusCreated)
			answer(w, `{"kind":"Secret","apiVersion":"v1","metadata":{"name":"r","namespace":"n"}}`)
		case r.Method == http.MethodPost:
			w.WriteHeader(http.StatusCreated)
			answer(w, `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"n","uid":"1","resourceVersion":"1"}}`)
		case r.Method == http.MethodPatch:
			_, _ = io.Copy(w, r.Body)
		default:
			refuse(w, http.StatusNotFound, "NotFound")
		}
	})
	m := tn.startManager()
	tn.makeStack("platform", nil, tn.small("settings"))
	tn.makeCluster("good", workloadServer(t, 0), nil)
	tn.awaitCluster("good", "a good cluster is served", ready("settings"))

	tn.writeKubeconfig("bad", fake)
	tn.makeClusterObject("bad", nil)
	tn.awaitCluster("bad", "the bad one's answer is told", phase("settings", addonsv1.AddonFailed, deliver.ReasonAnswerInvalid, ""))
	tn.makeCluster("another", workloadServer(t, 1), nil)
	tn.awaitCluster("another", "another good cluster is served beside it", ready("settings"))
	tn.Expect(m.Done()).NotTo(BeClosed(), "the manager lives")
}

// startFake starts an API server that somebody runs who means no good: it answers each
// request but that for its version with the handler. It returns a kubeconfig for it.
func startFake(t *testing.T, handler http.HandlerFunc) (kubeconfig []byte) {
	t.Helper()
	authority, err := pki.NewAuthority("fake")
	must(t, err)
	pair, err := authority.Server("fake")
	must(t, err)
	certificate, err := tls.X509KeyPair(pair.Certificate, pair.Key)
	must(t, err)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/version" {
			answer(w, `{"major":"1","minor":"36","gitVersion":"v1.36.3"}`)
			return
		}
		handler(w, r)
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}, NextProtos: []string{"http/1.1"}}
	s.StartTLS()
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return fmt.Appendf(nil, "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: c, user: u}}]\n"+
		"clusters: [{name: c, cluster: {server: '%s', certificate-authority-data: %s}}]\nusers: [{name: u, user: {token: abc}}]\n",
		s.URL, base64.StdEncoding.EncodeToString(authority.Certificate))
}

// empty answers as an API server does that has nothing but namespaces, ConfigMaps and
// Secrets, and none of them; false for what writes, and for single objects.
func empty(w http.ResponseWriter, r *http.Request) bool {
	query := r.URL.Query()
	switch {
	case r.Method != http.MethodGet:
		return false
	case r.URL.Path == "/api":
		answer(w, `{"kind":"APIVersions","versions":["v1"],"serverAddressByClientCIDRs":[]}`)
	case r.URL.Path == "/apis":
		answer(w, `{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`)
	case r.URL.Path == "/api/v1":
		var resources []string
		for _, kind := range []string{"Secret", "ConfigMap", "Namespace"} {
			resources = append(resources, fmt.Sprintf(`{"name":%q,"singularName":"","namespaced":%t,"kind":%q,"verbs":["create","delete","get","list","patch","update","watch"]}`,
				strings.ToLower(kind)+"s", kind != "Namespace", kind))
		}
		answer(w, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"v1","resources":[`+strings.Join(resources, ",")+`]}`)
	case query.Get("sendInitialEvents") != "":
		refuse(w, http.StatusUnprocessableEntity, "Invalid") // so that the client lists instead
	case query.Get("watch") != "":
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	case strings.HasSuffix(r.URL.Path, "/secrets") || strings.HasSuffix(r.URL.Path, "/configmaps"):
		kind := `"kind":"List","apiVersion":"v1"`
		if strings.Contains(r.Header.Get("Accept"), "PartialObjectMetadataList") {
			kind = `"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1"`
		}
		answer(w, `{`+kind+`,"metadata":{"resourceVersion":"1"},"items":[]}`)
	default:
		return false
	}
	return true
}

func answer(w http.ResponseWriter, text string) { _, _ = io.WriteString(w, text) }

func refuse(w http.ResponseWriter, code int, reason string) {
	w.WriteHeader(code)
	_, _ = fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"code":%d,"message":"no"}`, reason, code)
}
