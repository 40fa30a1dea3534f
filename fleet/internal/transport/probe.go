// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/version"

	"github.com/cluster-chandler/chandler/fleet/internal/answer"
	"github.com/cluster-chandler/chandler/fleet/kubeversion"
	"github.com/cluster-chandler/chandler/fleet/limits"
)

// Probe asks a server for its version: the cheapest request that shows that a
// Kubernetes API server is there and takes the credentials. It has no part in
// the rate limit, so a busy cluster doesn't look dead. It returns what is wrong
// with the subject, too. The deadline is that of the context.
func (t *Transport) Probe(ctx context.Context, s Subject) (string, *Fault) {
	var info version.Info
	if _, fault := t.get(ctx, s, "/version", &info); fault != nil {
		return "", fault
	}
	if _, err := kubeversion.Parse(info.GitVersion); err != nil { // keeps a hostile text out of status and logs
		return "", s.noAPIServer()
	}
	return info.GitVersion, nil
}

// Identify returns the UID of the cluster's namespace kube-system, or nothing if the user may
// not read it.
func (t *Transport) Identify(ctx context.Context, s Subject) (types.UID, *Fault) {
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
func (t *Transport) get(ctx context.Context, s Subject, path string, into any) (code int, _ *Fault) {
	progress := &trace{}
	ctx = answer.Asking(context.WithValue(ctx, traceKey{}, progress), answer.Probe)
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
	request.Header.Set("User-Agent", t.UserAgent)
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
	if limit, ok := errors.AsType[*limits.Error](err); ok {
		return 0, s.Fault(limit.Reason, "can't be used: %s; check the address in %s", limit.Message, s.Origin)
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
func (s Subject) statusFault(code int) *Fault {
	switch code {
	case http.StatusUnauthorized:
		return s.Fault(Unauthorized, "does not accept the credentials in %s; they may have expired: renew them there", s.Origin)
	case http.StatusForbidden:
		return s.Fault(Forbidden, "does not let the user in %s read /version; bind it to the ClusterRole system:public-info-viewer", s.Origin)
	default:
		return s.Fault(ProbeFailed, "answers GET /version with HTTP status %d; check the API server and what is in front of it", code)
	}
}

func (s Subject) noAPIServer() *Fault {
	return s.Fault(ProbeFailed, "answers, but not as a Kubernetes API server; check the address in %s", s.Origin)
}
