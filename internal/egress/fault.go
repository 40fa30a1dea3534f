// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"syscall"
	"time"

	"github.com/cluster-chandler/chandler/fleet/address"
)

// Kind is what may help against a fault.
type Kind int

const (
	// Unavailable: another try may help.
	Unavailable Kind = iota
	// Unauthorized: other credentials may help.
	Unauthorized
	// Refused: nothing helps but another URL.
	Refused
)

// Fault says in constant words why there is no answer.
type Fault struct {
	Kind Kind
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

func fault(kind Kind, format string, args ...any) *Fault {
	return &Fault{Kind: kind, text: fmt.Sprintf(format, args...)}
}

// answered is the fault of an answer that no caller can use.
func answered(kind Kind, host string, code int) *Fault {
	of := fault(kind, "%s answers %s", host, statusOf(code))
	switch {
	case kind != Unavailable: // the way out is for who knows the credentials to say
	case code < http.StatusInternalServerError:
		of.text += "; correct the address"
	default:
		of.text += "; " + again
	}
	of.Status = code
	return of
}

// statusOf is a code with its name.
func statusOf(code int) string { return fmt.Sprintf("%d %s", code, http.StatusText(code)) }

// Why a host asks to be left alone.
const (
	tooManyRequests = "429 Too Many Requests, or Retry-After"
	rateLimited     = "the rate limit of these credentials is used up"
)

// throttled doesn't say for how long, which is another number each time.
func throttled(host, why string, after time.Duration) *Fault {
	return &Fault{Kind: Unavailable, RetryAfter: after, text: host + " asks to be left alone for a while (" + why + "); it is asked again then"}
}

// again is all there is to do about what may pass.
const again = "it is asked again"

// Explain returns the fault in an error of a client, or of reading an answer's
// body. It is nil if the error is about neither.
func Explain(ctx context.Context, host string, err error) *Fault {
	var known *Fault
	if errors.As(err, &known) {
		return known
	}
	var network net.Error
	var operation *net.OpError
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fault(Unavailable, "%s broke off its answer; "+again, host)
	case errors.As(err, &network), errors.As(err, &operation), ctx.Err() != nil:
		return explain(ctx, host, err)
	}
	return nil
}

// explain never quotes the error: it may hold the local port, the time, or a
// signed URL.
func explain(ctx context.Context, host string, err error) *Fault {
	var known *Fault
	var dns *net.DNSError
	var errno syscall.Errno
	var broken *net.AddrError
	switch {
	case errors.As(err, &known):
		return known
	case isOfProxy(err):
		return explainProxy(ctx, host, err)
	case errors.Is(err, address.ErrRefused):
		return fault(Refused, "%s is a loopback, link-local or metadata address, which no object may name; correct the address", host)
	case errors.As(err, &broken):
		return fault(Refused, "%s is no address that can be asked: correct its host, or its port, which is 65535 at most", host)
	case errors.As(err, &dns):
		return fault(Unavailable, "the name of %s can't be resolved; have it added to the DNS, or correct the address", host)
	case errors.Is(err, syscall.ECONNREFUSED):
		return fault(Unavailable, "%s refuses connections; have its server started, or correct the address", host)
	}
	if why := tlsProblem(err); why != "" {
		return fault(Unavailable, "%s fails the TLS handshake: %s", host, why)
	}
	switch {
	case isTimeout(ctx, err):
		return fault(Unavailable, "%s doesn't answer in time; "+again, host)
	case errors.As(err, &errno):
		return fault(Unavailable, "%s can't be reached: %s; "+again, host, errno.Error())
	}
	return fault(Unavailable, "the connection to %s broke off; "+again, host)
}

func isTimeout(ctx context.Context, err error) bool {
	var timeout net.Error
	return ctx.Err() != nil || errors.As(err, &timeout) && timeout.Timeout()
}

// tlsProblem says what is wrong with TLS, or returns "".
func tlsProblem(err error) string {
	var (
		authority x509.UnknownAuthorityError
		name      x509.HostnameError
		invalid   x509.CertificateInvalidError
		verify    *tls.CertificateVerificationError
		record    tls.RecordHeaderError
		alert     tls.AlertError
		operation *net.OpError
	)
	switch {
	case errors.As(err, &authority):
		return "its certificate is not signed by a known authority; ca.crt of the credentials may name one"
	case errors.As(err, &name):
		return "its certificate is for other names; correct the address, or have another certificate made"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "its certificate has expired or is not valid yet; have it renewed"
	case errors.As(err, &invalid), errors.As(err, &verify):
		return "its certificate is not valid; have another one made"
	case errors.As(err, &record), errors.Is(err, http.ErrSchemeMismatch):
		return "it doesn't speak TLS; correct the address, or set plainHTTP for one with http://"
	case errors.As(err, &alert):
		return "it rejects the handshake; it may want a client certificate (tls.crt and tls.key of the credentials)"
	case errors.As(err, &operation) && (operation.Op == "remote error" || operation.Op == "local error"):
		return "it rejects the handshake; it may want a client certificate (tls.crt and tls.key of the credentials)"
	}
	return ""
}
