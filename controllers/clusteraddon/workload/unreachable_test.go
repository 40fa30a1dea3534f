// SPDX-License-Identifier: Apache-2.0

package workload_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"syscall"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/cluster-chandler/chandler/controllers/clusteraddon/workload"
	"github.com/cluster-chandler/chandler/test/must"
)

// reading is a request for a ConfigMap to a server that may fail in many ways.
type reading struct {
	handler          http.HandlerFunc
	start            func(*httptest.Server)               // how the server is started; nil for plain HTTP
	prepare          func(*httptest.Server, *rest.Config) // what is otherwise with the server and the client; nil for nothing
	discovers        bool                                 // the client asks which kinds there are
	cancelled        bool
	apiVersion, name string
}

// do makes the request, and returns its error.
func (r reading) do(t *testing.T) error {
	t.Helper()
	server := httptest.NewUnstartedServer(r.handler)
	if r.start == nil {
		r.start = (*httptest.Server).Start
	}
	r.start(server)
	t.Cleanup(server.Close)
	config, options := &rest.Config{Host: server.URL}, client.Options{Scheme: runtime.NewScheme()}
	if r.prepare != nil {
		r.prepare(server, config)
	}
	if !r.discovers {
		mapper := meta.NewDefaultRESTMapper(nil)
		mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, meta.RESTScopeNamespace)
		options.Mapper = mapper
	}
	made, err := client.New(config, options)
	must.Succeed(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if r.cancelled {
		cancel()
	}
	object := &unstructured.Unstructured{}
	object.SetAPIVersion(cmp.Or(r.apiVersion, "v1"))
	object.SetKind("ConfigMap")
	return made.Get(ctx, client.ObjectKey{Namespace: "default", Name: cmp.Or(r.name, "gate")}, object)
}

// says answers each request with a code and a text.
func says(code int, contentType, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(code)
		_, _ = w.Write([]byte(text))
	}
}

// breaksOff sends a part of what it promises.
func breaksOff(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", "1000")
	_, _ = w.Write([]byte(`{"apiVersion": "v1",`))
	w.(http.Flusher).Flush()
	panic(http.ErrAbortHandler)
}

func overHTTP2(s *httptest.Server) {
	s.EnableHTTP2 = true
	s.StartTLS()
}

// TestUnreachableClusters tells errors that end a reconcile from those of one
// request, with the clients that are used there.
func TestUnreachableClusters(t *testing.T) {
	fine := says(http.StatusOK, "application/json", `{"apiVersion": "v1", "kind": "ConfigMap"}`)
	status := func(code int, reason string) http.HandlerFunc {
		return says(code, "application/json", fmt.Sprintf(`{"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": %d, "reason": %q}`, code, reason))
	}
	slow := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	gone := func(s *httptest.Server, _ *rest.Config) { s.Close() }
	expectsTLS := func(s *httptest.Server, c *rest.Config) { c.Host = "https://" + s.Listener.Addr().String() }
	trusts := func(_ *httptest.Server, c *rest.Config) { c.Insecure = true }
	impatient := func(_ *httptest.Server, c *rest.Config) { c.Timeout = 50 * time.Millisecond }
	spent := func(_ *httptest.Server, c *rest.Config) { // lets nobody through for an hour
		c.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(1.0/3600, 1)
		c.RateLimiter.Accept()
	}
	for name, tc := range map[string]struct {
		reading     reading
		unreachable bool
	}{
		"refused":                    {reading{handler: fine, prepare: gone}, true},
		"no trusted certificate":     {reading{handler: fine, start: (*httptest.Server).StartTLS}, true},
		"no TLS":                     {reading{handler: fine, prepare: expectsTLS}, true},
		"no answer in time":          {reading{handler: slow, prepare: impatient}, true},
		"the reconcile is over":      {reading{handler: fine, cancelled: true}, true},
		"no turn in time":            {reading{handler: fine, prepare: spent}, false},
		"half an answer":             {reading{handler: breaksOff}, true},
		"half an answer, in HTTP/2":  {reading{handler: breaksOff, start: overHTTP2, prepare: trusts}, false},
		"no discovery":               {reading{handler: fine, prepare: gone, discovers: true}, true},
		"no kinds at all":            {reading{handler: says(http.StatusOK, "application/json", `{"kind": "APIGroupList"}`), discovers: true}, true},
		"not found":                  {reading{handler: status(http.StatusNotFound, "NotFound")}, false},
		"forbidden":                  {reading{handler: status(http.StatusForbidden, "Forbidden")}, false},
		"internal error":             {reading{handler: status(http.StatusInternalServerError, "InternalError")}, false},
		"no service":                 {reading{handler: status(http.StatusServiceUnavailable, "ServiceUnavailable")}, false},
		"no API at all":              {reading{handler: status(http.StatusNotFound, "NotFound"), discovers: true}, false},
		"discovery answers an error": {reading{handler: status(http.StatusInternalServerError, "InternalError"), discovers: true}, false},
		"an answer of another kind":  {reading{handler: says(http.StatusOK, "application/json", "<html>")}, false},
		"a kind that isn't there":    {reading{handler: fine, apiVersion: "example.org/v1"}, false},
		"no API version":             {reading{handler: fine, apiVersion: "apps/v1/x"}, false},
		"a name that none has":       {reading{handler: fine, name: "http2: a/b"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if err := tc.reading.do(t); err == nil || workload.IsUnreachable(err) != tc.unreachable {
				t.Errorf("%v: unreachable is %v", err, !tc.unreachable)
			}
		})
	}
	for unreachable, errs := range map[bool][]error{
		true: {
			&net.DNSError{Err: "no such host"},
			&net.OpError{Op: "remote error", Err: errors.New("tls: bad record MAC")},
			net.ErrClosed,
			syscall.ETIMEDOUT,
			&discovery.ErrGroupDiscoveryFailed{},
			&apiutil.ErrResourceDiscoveryFailed{{Group: "apps", Version: "v1"}: errors.New("no answer")},
			errors.Join(errors.New("what nobody knows"), fmt.Errorf("web: %w", net.ErrClosed)),
		},
		false: {
			errors.New("what nobody knows"),
			errors.Join(errors.New("what nobody knows"), errors.New("add-on http2: unknown")),
			&fs.PathError{Op: "open", Path: "x", Err: syscall.ENOSPC},
			&fs.PathError{Op: "open", Path: "x", Err: syscall.ETIMEDOUT},
			&url.Error{Op: "parse", URL: ":", Err: errors.New("missing protocol scheme")},
			&apiutil.ErrResourceDiscoveryFailed{{Group: "apps", Version: "v1"}: apierrors.NewServiceUnavailable("x")},
			&apiutil.ErrResourceDiscoveryFailed{{Group: "apps", Version: "v1"}: &meta.NoResourceMatchError{}},
		},
	} {
		for _, err := range errs {
			if wrapped := fmt.Errorf("add-on web: %w", err); workload.IsUnreachable(wrapped) != unreachable {
				t.Errorf("%v: unreachable is %v", wrapped, !unreachable)
			}
		}
	}
}
