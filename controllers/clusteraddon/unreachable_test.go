// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
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

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/fleet"
	"github.com/cluster-chandler/chandler/internal/reasons"
)

// reading is a request for a ConfigMap to a server that may fail in many ways.
type reading struct {
	handler    http.HandlerFunc
	start      func(*httptest.Server) // how the server is started; nil for plain HTTP
	scheme     string                 // what the client takes it for
	trusted    bool                   // the server's certificate is
	discovers  bool                   // the client asks which kinds there are
	gone       bool                   // the server is stopped before
	limiter    flowcontrol.RateLimiter
	timeout    time.Duration
	apiVersion string
	name       string
	cancelled  bool
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
	config := &rest.Config{Host: server.URL, Timeout: r.timeout, RateLimiter: r.limiter}
	if r.scheme != "" {
		config.Host = r.scheme + "://" + server.Listener.Addr().String()
	}
	if r.trusted {
		config.Insecure = true
	}
	if r.gone {
		server.Close()
	}
	options := client.Options{Scheme: runtime.NewScheme()}
	if !r.discovers {
		mapper := meta.NewDefaultRESTMapper(nil)
		mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, meta.RESTScopeNamespace)
		options.Mapper = mapper
	}
	made, err := client.New(config, options)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if r.cancelled {
		cancel()
	}
	if r.apiVersion == "" {
		r.apiVersion = "v1"
	}
	if r.name == "" {
		r.name = "gate"
	}
	object := &unstructured.Unstructured{}
	object.SetAPIVersion(r.apiVersion)
	object.SetKind("ConfigMap")
	return made.Get(ctx, client.ObjectKey{Namespace: "default", Name: r.name}, object)
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
	for name, tc := range map[string]struct {
		reading     reading
		unreachable bool
	}{
		"refused":                    {reading{handler: fine, gone: true}, true},
		"no trusted certificate":     {reading{handler: fine, start: (*httptest.Server).StartTLS}, true},
		"no TLS":                     {reading{handler: fine, scheme: "https"}, true},
		"no answer in time":          {reading{handler: slow, timeout: 50 * time.Millisecond}, true},
		"the reconcile is over":      {reading{handler: fine, cancelled: true}, true},
		"no turn in time":            {reading{handler: fine, limiter: spent()}, false},
		"half an answer":             {reading{handler: breaksOff}, true},
		"half an answer, in HTTP/2":  {reading{handler: breaksOff, start: overHTTP2, trusted: true}, false},
		"no discovery":               {reading{handler: fine, gone: true, discovers: true}, true},
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
			if err := tc.reading.do(t); err == nil || isUnreachable(err) != tc.unreachable {
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
			if wrapped := fmt.Errorf("add-on web: %w", err); isUnreachable(wrapped) != unreachable {
				t.Errorf("%v: unreachable is %v", wrapped, !unreachable)
			}
		}
	}
}

// spent lets nobody through for an hour.
func spent() flowcontrol.RateLimiter {
	limiter := flowcontrol.NewTokenBucketRateLimiter(1.0/3600, 1)
	limiter.Accept()
	return limiter
}

// What goes wrong with one request leaves the other add-ons alone, and is told as what it is.
func TestFailuresOfRequests(t *testing.T) {
	for _, tc := range []struct {
		err         error
		unreachable bool
		says        string
	}{
		{&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, true, "The cluster didn't answer; trying again"},
		{&url.Error{Op: "Get", URL: "https://10.0.0.1:6443/api/v1/namespaces/a/secrets?limit=5", Err: context.DeadlineExceeded}, true, "The cluster didn't answer; trying again"},
		{apierrors.NewConflict(schema.GroupResource{Resource: "configmaps"}, "a", errors.New("changed")), false, "Another write came first; trying again"},
		{apierrors.NewInternalError(errors.New("etcd")), false, `The cluster answered "Internal error occurred: etcd"; trying again`},
		{errors.New("sentinel"), false, "A request failed before it was sent"},
	} {
		one := requestFailed(tc.err, addonsv1.AddonStatus{Name: "web"})
		status := one.status
		if one.unreachable != tc.unreachable || status.Reason != reasons.Retrying || !strings.HasPrefix(status.Message, tc.says) ||
			strings.Contains(status.Message, "sentinel") || !errors.Is(one.err, tc.err) {
			t.Errorf("%v: unreachable %v, %+v", tc.err, one.unreachable, status)
		}
	}
}

// An add-on that is to be another one isn't ready while that can't be brought into the cluster.
func TestFailedUpgradeIsNotReady(t *testing.T) {
	for was, want := range map[addonsv1.AddonPhase]addonsv1.AddonPhase{
		addonsv1.AddonReady:      addonsv1.AddonUpgrading,
		addonsv1.AddonInstalling: addonsv1.AddonInstalling,
		"":                       addonsv1.AddonPending,
	} {
		ca := &addonsv1.ClusterAddon{}
		if was != "" {
			ca.Status.Addons = []addonsv1.AddonStatus{{Name: "web", Phase: was}}
		}
		q := &clusterRun{ca: ca}
		one := upgradeFailed(context.DeadlineExceeded, q.previousStatus(addonsv1.AddonStatus{Name: "web"}))
		status := one.status
		if status.Phase != want || status.Reason != reasons.Retrying || !one.unreachable {
			t.Errorf("was %s: %+v", was, status)
		}
	}
}

// What a cluster answers beyond a limit is told with the request. Only where it is about
// the cluster's kinds, nothing else is asked.
func TestAnswersBeyondALimit(t *testing.T) {
	for _, discovery := range []bool{true, false} {
		limit := &fleet.LimitError{Reason: fleet.ReasonResponseTooLarge, Message: "GET /x was answered with more than 4096 KiB", Discovery: discovery}
		q := &clusterRun{ca: &addonsv1.ClusterAddon{}}
		one := requestFailed(fmt.Errorf("unexpected error when reading response body: %w", limit), q.previousStatus(addonsv1.AddonStatus{Name: "web"}))
		status := one.status
		if one.unreachable != discovery || status.Reason != reasons.ResponseTooLarge || status.Phase != addonsv1.AddonPending ||
			!strings.HasPrefix(status.Message, limit.Message) || one.err == nil {
			t.Errorf("discovery %v: unreachable %v, %+v", discovery, one.unreachable, status)
		}
	}
}
