// SPDX-License-Identifier: Apache-2.0

package answer

import (
	"context"
	"net/http"
	"strings"
)

// Asked is what a request asks for, by which its answer is limited.
type Asked int

const (
	// Object is one object, the answer to a write, or anything else.
	Object Asked = iota
	// List is a list of objects, or one of its pages. All of them have one limit.
	List
	// Page is a page that has the limit of an object besides.
	Page
	// Document is a part of what a server says about its kinds.
	Document
	// Probe is what tells whether a server answers, and which one it is.
	Probe
	// Watch is a stream of events.
	Watch
)

type askedKey struct{}

// Asking returns a context for requests that ask for this. Watches are known without it.
func Asking(ctx context.Context, what Asked) context.Context {
	return context.WithValue(ctx, askedKey{}, what)
}

// Of returns what a request asks for. Clients of client-go don't say it of objects and lists. Those are told apart by the path,
// from which the path of the server itself is taken off.
func Of(request *http.Request, server string) Asked {
	asked, _ := request.Context().Value(askedKey{}).(Asked)
	switch {
	case IsWatch(request):
		return Watch
	case asked == Document, asked == Probe:
		return asked
	case !isList(request.Method, strings.TrimPrefix(request.URL.Path, strings.TrimSuffix(server, "/"))):
		return Object
	}
	return max(asked, List)
}

// IsWatch reports whether a request watches.
func IsWatch(request *http.Request) bool {
	watch := request.URL.Query().Get("watch")
	return watch == "true" || watch == "1"
}

// isList reports whether a request is answered with a list of objects.
func isList(method, path string) bool {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case method != http.MethodGet && method != http.MethodDelete:
		return false
	case parts[0] == "api" && len(parts) > 2:
		parts = parts[2:]
	case parts[0] == "apis" && len(parts) > 3:
		parts = parts[3:]
	default:
		return false
	}
	if parts[0] == "namespaces" && len(parts) > 2 {
		parts = parts[2:]
	}
	return len(parts) == 1
}
