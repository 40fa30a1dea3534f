// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
)

// Which proxy is asked is the administrator's choice: its faults aren't those of the
// host behind it, and whoever named that can't mend them.

// ofProxy is a fault of the proxy on the way to a host, said without its address.
func ofProxy(host, what string) *Fault {
	return fault(Unavailable, "the proxy on the way to %s %s; have the proxy mended, or HTTPS_PROXY, HTTP_PROXY or NO_PROXY of the provider corrected", host, what)
}

// isOfProxy tells whether a connection failed on the way to the proxy, or the proxy
// didn't connect.
func isOfProxy(err error) bool {
	var operation *net.OpError
	return errors.As(err, &operation) && (operation.Op == "proxyconnect" || strings.HasPrefix(operation.Op, "socks "))
}

// explainProxy says why the proxy can't be used.
func explainProxy(ctx context.Context, host string, err error) *Fault {
	var dns *net.DNSError
	var errno syscall.Errno
	switch {
	case errors.As(err, &dns):
		return ofProxy(host, "has a name that can't be resolved")
	case errors.Is(err, syscall.ECONNREFUSED):
		return ofProxy(host, "refuses connections")
	case tlsProblem(err) != "":
		return ofProxy(host, "fails the TLS handshake: its certificate may be of an authority that isn't known, or it doesn't speak TLS")
	case isTimeout(ctx, err):
		return ofProxy(host, "doesn't answer in time")
	case errors.As(err, &errno):
		return ofProxy(host, "can't be reached: "+errno.Error())
	}
	return ofProxy(host, "doesn't connect")
}

// judgeConnect is the fault in what a proxy answers when it has to connect to a host.
func judgeConnect(_ context.Context, _ *url.URL, to *http.Request, answer *http.Response) error {
	if answer.StatusCode == http.StatusOK {
		return nil
	}
	return proxyAnswered(strings.TrimSuffix(to.Host, ":443"), answer.StatusCode)
}

// proxyAnswered is the fault of a proxy that answers in place of the host.
func proxyAnswered(host string, code int) *Fault {
	return ofProxy(host, "answers "+statusOf(code)+" in its place")
}
