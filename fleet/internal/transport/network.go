// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"syscall"

	"github.com/cluster-chandler/chandler/fleet/address"
)

// networkFault explains why no answer came. It never quotes the error itself:
// that holds the local port or the time, and a message must not change from
// one attempt to the next.
func (s Subject) networkFault(ctx context.Context, err error, progress *trace) *Fault {
	var dns *net.DNSError
	switch {
	case errors.Is(err, address.ErrRefused):
		return s.Fault(AddressRefused, "resolves to an address that is not allowed (loopback, link-local or metadata service); correct the server in %s", s.Origin)
	case errors.As(err, &dns):
		return s.Fault(NameResolutionFailed, "can't be resolved; check the host name in %s and the DNS of the management cluster", s.Origin)
	case errors.Is(err, syscall.ECONNREFUSED):
		return s.Fault(ConnectionRefused, "refuses connections; check that the control plane runs and that the address in %s is right", s.Origin)
	}
	if why := tlsProblem(err); why != "" {
		return s.Fault(TLSFailed, "fails the TLS handshake: %s; check server and certificate-authority-data in %s", why, s.Origin)
	}
	if isTimeout(ctx, err) {
		return s.timeoutFault(progress)
	}
	return s.Fault(ConnectionFailed, "can't be reached (%s); check the network between the management cluster and it", networkProblem(err))
}

// timeoutFault tells by the progress of the attempt where it got stuck.
func (s Subject) timeoutFault(progress *trace) *Fault {
	switch {
	case !progress.dialled.Load():
		return s.Fault(ConnectionTimedOut, "does not answer; check that the control plane runs and that no firewall drops the packets")
	case !progress.answered.Load():
		return s.Fault(ConnectionTimedOut, "accepts connections but never answers; check the API server and what is in front of it")
	case !progress.secured.Load():
		return s.Fault(TLSFailed, "stalls in the TLS handshake; check the API server and what is in front of it")
	default:
		return s.Fault(ResponseTimedOut, "does not answer GET /version in time; check the load of the API server and the network")
	}
}

func isTimeout(ctx context.Context, err error) bool {
	var timeout net.Error
	return ctx.Err() != nil || errors.Is(err, context.DeadlineExceeded) || (errors.As(err, &timeout) && timeout.Timeout())
}

// tlsProblem says in constant words what is wrong with TLS, or returns "".
func tlsProblem(err error) string {
	invalid, ok := errors.AsType[x509.CertificateInvalidError](err)
	switch {
	case is[x509.UnknownAuthorityError](err):
		return "its certificate is not signed by the expected authority"
	case is[x509.HostnameError](err):
		return "its certificate is for other names"
	case ok && invalid.Reason == x509.Expired:
		return "its certificate has expired or is not valid yet"
	case is[*tls.CertificateVerificationError](err):
		return "its certificate is not valid"
	case is[tls.RecordHeaderError](err):
		return "it does not speak TLS"
	}
	// Alerts that the server sends are an unexported type within a
	// net.OpError of this operation.
	op, ok := errors.AsType[*net.OpError](err)
	if is[tls.AlertError](err) || ok && (op.Op == "remote error" || op.Op == "local error") {
		return "it rejects the handshake"
	}
	return ""
}

func is[T error](err error) bool { _, ok := errors.AsType[T](err); return ok }

// networkProblem names a failure of the network in constant words.
func networkProblem(err error) string {
	var errno syscall.Errno
	switch {
	case errors.As(err, &errno):
		return errno.Error()
	case errors.Is(err, ErrForeignHost):
		return "redirects to another host"
	default:
		return "the connection broke off"
	}
}
