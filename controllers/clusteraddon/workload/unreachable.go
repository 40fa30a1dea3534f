// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/url"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// IsUnreachable reports whether an error is of the connection to a cluster, or of what the
// cluster offers at all: other requests fail for it, too. An answer of the API server is no
// such error, and neither is a request that can't be made. A connection that breaks off within
// an answer may look like either: then the next request tells.
func IsUnreachable(err error) bool {
	if answer := apierrors.APIStatus(nil); errors.As(err, &answer) || meta.IsNoMatchError(err) {
		return false
	}
	_, ofGroups := errors.AsType[*discovery.ErrGroupDiscoveryFailed](err)
	_, ofResources := errors.AsType[*apiutil.ErrResourceDiscoveryFailed](err)
	isOver := errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
	return ofGroups || ofResources || isOver || isOfNetwork(err)
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
