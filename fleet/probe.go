// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/version"

	"github.com/cluster-chandler/chandler/fleet/kubeversion"
)

// probe asks a server for its version: the cheapest request that shows that a
// Kubernetes API server is there and takes the credentials. It has no part in
// the rate limit, so a busy cluster doesn't look dead. It returns what is wrong
// with the subject, too. The deadline is that of the context.
func (t *transport) probe(ctx context.Context, s subject) (string, *Fault) {
	var info version.Info
	if _, fault := t.get(ctx, s, "/version", &info); fault != nil {
		return "", fault
	}
	if _, err := kubeversion.Parse(info.GitVersion); err != nil { // keeps a hostile text out of status and logs
		return "", s.noAPIServer()
	}
	return info.GitVersion, nil
}

// identify returns the UID of the cluster's namespace kube-system, or nothing if the user may
// not read it.
func (t *transport) identify(ctx context.Context, s subject) (types.UID, *Fault) {
	var namespace metav1.PartialObjectMetadata
	code, fault := t.get(ctx, s, "/api/v1/namespaces/"+metav1.NamespaceSystem, &namespace)
	switch {
	case code == http.StatusForbidden, code == http.StatusNotFound:
		return "", nil
	case fault != nil:
		return "", fault
	case len(namespace.UID) > 64:
		return "", s.noAPIServer()
	}
	return namespace.UID, nil
}

// get reads what is at a path of the server, and returns the HTTP status if there was one. The round
// tripper is used directly: a probe follows no redirect.
func (t *transport) get(ctx context.Context, s subject, path string, into any) (code int, _ *Fault) {
	progress := &trace{}
	ctx = context.WithValue(ctx, traceKey{}, progress)
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		TLSHandshakeDone: func(_ tls.ConnectionState, err error) { progress.secured.Store(err == nil) },
		GotConn: func(info httptrace.GotConnInfo) {
			progress.dialled.Store(true)
			progress.secured.Store(true)
			if info.Reused {
				progress.answered.Store(true)
			}
		},
	})
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, t.server.JoinPath(path).String(), nil)
	if err != nil {
		return 0, s.networkFault(ctx, err, progress)
	}
	request.Header.Set("User-Agent", t.agent)
	request.Header.Set("Accept", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json")
	response, err := t.RoundTrip(request)
	if err != nil {
		return 0, s.networkFault(ctx, err, progress)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return response.StatusCode, s.statusFault(response.StatusCode)
	}
	body, err := io.ReadAll(response.Body)
	if limit, ok := errors.AsType[*LimitError](err); ok {
		return 0, s.fault(limit.Reason, "can't be used: %s; check the address in %s", limit.Message, s.origin)
	}
	if err != nil {
		return 0, s.networkFault(ctx, err, progress)
	}
	if err := json.Unmarshal(body, into); err != nil {
		return 0, s.noAPIServer()
	}
	return response.StatusCode, nil
}

// statusFault explains an HTTP status other than 200.
func (s subject) statusFault(code int) *Fault {
	switch code {
	case http.StatusUnauthorized:
		return s.fault(ReasonUnauthorized, "does not accept the credentials in %s; they may have expired: renew them there", s.origin)
	case http.StatusForbidden:
		return s.fault(ReasonForbidden, "does not let the user in %s read /version; bind it to the ClusterRole system:public-info-viewer", s.origin)
	default:
		return s.fault(ReasonProbeFailed, "answers GET /version with HTTP status %d; check the API server and what is in front of it", code)
	}
}

func (s subject) noAPIServer() *Fault {
	return s.fault(ReasonProbeFailed, "answers, but not as a Kubernetes API server; check the address in %s", s.origin)
}

// subject is what a fault is about.
type subject struct {
	host   string // host:port of the server
	origin string // where its kubeconfig is kept
}

func (s subject) fault(reason, format string, args ...any) *Fault {
	return &Fault{Reason: reason, Message: s.host + " " + fmt.Sprintf(format, args...)}
}

// trace is how far an attempt came before its deadline.
type trace struct{ dialled, answered, secured atomic.Bool }

type traceKey struct{}

// watchedConn is a TCP connection whose end is noticed. HTTP closes it once the server, or the
// network, has ended it.
type watchedConn struct {
	net.Conn
	transport *transport
	trace     *trace // of the probe that it was made for; nil for any other request
}

// Read implements io.Reader. It notes the first byte that the server sends.
func (c *watchedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 && c.trace != nil {
		c.trace.answered.Store(true)
	}
	return n, err
}

// Close implements io.Closer.
func (c *watchedConn) Close() error {
	if !c.transport.closed.Load() {
		c.transport.unanswered()
	}
	return c.Conn.Close()
}
