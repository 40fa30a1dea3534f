// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/cluster-chandler/chandler/fleet/address"
	"github.com/cluster-chandler/chandler/internal/failure"
)

// Fault says in constant words why there is no answer.
type Fault struct {
	// Reason is [failure.SourceUnavailable], [failure.SourceUnauthorized] if other credentials may help,
	// [failure.SourceUntrusted], or [failure.ArtifactRefused] if nothing helps but another URL.
	Reason string
	// RetryAfter is how long the host asked to be left alone; 0 if it didn't.
	RetryAfter time.Duration
	// Status is the code of the answer that is the fault. 0 if none is, or one that asks
	// to be left alone.
	Status int
	// From is who answered, with nothing but scheme and host. nil if nobody did.
	From *url.URL

	text string
}

// Error implements error.
func (f *Fault) Error() string { return f.text }

func fault(reason, format string, args ...any) *Fault {
	return &Fault{Reason: reason, text: fmt.Sprintf(format, args...)}
}

// answered returns the fault of an answer that no caller can use.
func answered(reason, host string, code int) *Fault {
	wayOut := "; check the server. It is asked again"
	switch {
	case reason != failure.SourceUnavailable:
		wayOut = "" // it is for who knows the credentials to say
	case code < http.StatusInternalServerError:
		wayOut = "; correct the address"
	}
	of := fault(reason, "%s answers %s%s", host, statusOf(code), wayOut)
	of.Status = code
	return of
}

// statusOf returns a code with its name.
func statusOf(code int) string { return fmt.Sprintf("%d %s", code, http.StatusText(code)) }

// Explain returns the fault in an error of a client, or of reading an answer's
// body, or that it took too long. It is nil if the error is about neither.
func Explain(ctx context.Context, host string, err error) *Fault {
	if known, ok := errors.AsType[*Fault](err); ok || ctx.Err() == nil {
		return known
	}
	return explain(ctx, host, err)
}

// explain never quotes the error: it may hold the local port, the time, or a
// signed URL.
func explain(ctx context.Context, host string, err error) *Fault {
	known, isKnown := errors.AsType[*Fault](err)
	operation, isNet := errors.AsType[*net.OpError](err)
	switch {
	case isKnown:
		return known
	case errors.Is(err, address.ErrRefused):
		return fault(failure.ArtifactRefused, "%s is a loopback, link-local or metadata address, which no object may name; correct the address", host)
	case is[*net.AddrError](err):
		return fault(failure.ArtifactRefused, "%s is no address that can be asked: correct its host, or its port, which is 65535 at most", host)
	case isNet && (operation.Op == "proxyconnect" || strings.HasPrefix(operation.Op, "socks ")):
		return ofProxy(host, cause(ctx, err))
	}
	reason := failure.SourceUnavailable
	if is[*tls.CertificateVerificationError](err) {
		reason = failure.SourceUntrusted
	}
	return fault(reason, "%s %s; check the address and the host. It is asked again", host, cause(ctx, err))
}

// ofProxy returns a fault of the proxy on the way to a host, said without its address. Which one is
// asked is the administrator's choice: whoever named the host can't fix it.
func ofProxy(host, what string) *Fault {
	return fault(failure.SourceUnavailable, "the proxy on the way to %s %s; check the proxy, or correct HTTPS_PROXY, HTTP_PROXY or NO_PROXY of the provider", host, what)
}

// evaluateConnect returns the fault in what a proxy answers when it has to connect to a host.
func evaluateConnect(_ context.Context, _ *url.URL, to *http.Request, answer *http.Response) error {
	if answer.StatusCode == http.StatusOK {
		return nil
	}
	return ofProxy(strings.TrimSuffix(to.Host, ":443"), "answers "+statusOf(answer.StatusCode))
}

func is[T error](err error) bool { _, ok := errors.AsType[T](err); return ok }

// cause says in constant words what failed.
func cause(ctx context.Context, err error) string {
	operation, isNet := errors.AsType[*net.OpError](err)
	timeout, canTimeOut := errors.AsType[net.Error](err)
	errno, isOfSystem := errors.AsType[syscall.Errno](err)
	switch {
	case is[*net.DNSError](err):
		return "has a name that can't be resolved"
	case is[*tls.CertificateVerificationError](err):
		return "fails the TLS handshake: its certificate isn't valid for this name and time, or is of an authority that isn't known (ca.crt of the credentials may name one)"
	case is[tls.RecordHeaderError](err), errors.Is(err, http.ErrSchemeMismatch), is[tls.AlertError](err),
		isNet && (operation.Op == "remote error" || operation.Op == "local error"):
		return "fails the TLS handshake: it may speak no TLS (plainHTTP), or want a client's certificate (tls.crt and tls.key of the credentials)"
	case ctx.Err() != nil, canTimeOut && timeout.Timeout():
		return "doesn't answer in time"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "refuses connections"
	case isOfSystem:
		return "can't be reached: " + errno.Error()
	}
	return "broke off the connection"
}
