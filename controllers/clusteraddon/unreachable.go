// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/url"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// isUnreachable reports whether an error is of the connection to a cluster, or of what the
// cluster offers at all: other requests fail for it, too. An answer of the API server is no
// such error, and neither is a request that can't be made.
func isUnreachable(err error) bool {
	if answer := apierrors.APIStatus(nil); errors.As(err, &answer) || meta.IsNoMatchError(err) {
		return false
	}
	_, ofGroups := errors.AsType[*discovery.ErrGroupDiscoveryFailed](err)
	_, ofResources := errors.AsType[*apiutil.ErrResourceDiscoveryFailed](err)
	return ofGroups || ofResources || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) ||
		isOfNetwork(err) || isInterrupted(err)
}

// isOfNetwork reports whether no request came through, or no whole answer: a name that isn't
// found, a connection that isn't made or broke off, a TLS handshake that failed.
func isOfNetwork(err error) bool {
	if _, ok := errors.AsType[*fs.PathError](err); ok {
		return false // of a disk, whose errors look like those of a network
	}
	if request, ok := errors.AsType[*url.Error](err); ok {
		return request.Op != "parse"
	}
	_, ok := errors.AsType[net.Error](err)
	return ok || errors.Is(err, net.ErrClosed) || errors.Is(err, io.ErrUnexpectedEOF)
}

// requestOf returns the method and path of the request that failed, as in " GET /api/v1/nodes",
// or "" if the error doesn't tell. Its host and query are left out.
func requestOf(err error) string {
	request, ok := errors.AsType[*url.Error](err)
	if !ok {
		return ""
	}
	address, err := url.Parse(request.URL)
	if err != nil || address.Path == "" {
		return ""
	}
	return " " + strings.ToUpper(request.Op) + " " + address.Path
}

// interruptions are how texts begin of errors that have no type: of client-go while it
// waits for its turn or reads an answer, of controller-runtime's discovery, and of HTTP/2.
var interruptions = []string{
	"client rate limiter Wait returned an error",
	"unexpected error when reading response body",
	"stream error when reading response body",
	"received an empty API groups list",
	"http2: ",
}

// isInterrupted looks for them in an error and all that it wraps: elsewhere in the text
// they may be somebody's name for an object.
func isInterrupted(err error) bool {
	for ; err != nil; err = errors.Unwrap(err) {
		if slices.ContainsFunc(interruptions, func(text string) bool { return strings.HasPrefix(err.Error(), text) }) {
			return true
		}
		if several, ok := err.(interface{ Unwrap() []error }); ok {
			return slices.ContainsFunc(several.Unwrap(), isInterrupted)
		}
	}
	return false
}
