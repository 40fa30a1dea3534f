// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"net/http"
	"slices"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// Event is an answered request.
type Event = auditv1.Event

// By are the requests of a user.
func By(user string) func(*Event) bool { return func(e *Event) bool { return e.User.Username == user } }

var writeVerbs = []string{"create", "update", "patch", "delete", "deletecollection"}

// Write says whether the request changed something, or would have.
func Write(e *Event) bool { return slices.Contains(writeVerbs, e.Verb) }

// Probe reports whether the request is one by which Chandler sees that the server is there.
func Probe(e *Event) bool { return e.RequestURI == "/version" }

// Forbidden says whether the server refused the request for want of rights.
func Forbidden(e *Event) bool {
	return e.ResponseStatus != nil && e.ResponseStatus.Code == http.StatusForbidden
}
