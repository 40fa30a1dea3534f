// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/cluster-chandler/chandler/test/audit"
)

// auditEvent is an answered request.
type auditEvent = audit.Event

// mark is a moment in a server's audit log.
type mark struct{ audit.Mark }

// mark returns this moment: what was answered before is before it.
func (s *server) mark(t *testing.T) mark {
	t.Helper()
	return mark{s.Audit.Mark(t)}
}

// requests are those of a user that were answered since the mark, watches at
// their start. It returns all up to now.
func (m mark) requests(t *testing.T, user string) []auditEvent {
	t.Helper()
	return m.Requests(t, audit.By(user))
}

// writes are the requests that change something, without those by which an instance
// says that it is there.
func writes(events []auditEvent) []string {
	return described(events, func(e auditEvent) bool {
		return !registers(e) && audit.Write(&e) && !strings.Contains(e.RequestURI, "dryRun=")
	})
}

// registers says whether a request is about an instance itself: its ProviderInstance,
// or whether it has the rights it needs.
func registers(e auditEvent) bool {
	return e.ObjectRef != nil && (e.ObjectRef.Resource == "providerinstances" || e.ObjectRef.Resource == "selfsubjectaccessreviews")
}

// reads are the requests for objects of a resource; of all names if none is given.
func reads(events []auditEvent, resource, name string, verbs ...string) []string {
	return described(events, func(e auditEvent) bool {
		return slices.Contains(verbs, e.Verb) && e.ObjectRef != nil && e.ObjectRef.Resource == resource && (name == "" || e.ObjectRef.Name == name)
	})
}

// creations are the requests that made an object of a resource; of all names if
// none is given. Server-side apply creates, too.
func creations(events []auditEvent, resource, name string) []string {
	return described(events, func(e auditEvent) bool {
		return e.ResponseStatus != nil && e.ResponseStatus.Code == http.StatusCreated && !strings.Contains(e.RequestURI, "dryRun") &&
			e.ObjectRef != nil && e.ObjectRef.Resource == resource && (name == "" || e.ObjectRef.Name == name)
	})
}

func described(events []auditEvent, keep func(auditEvent) bool) []string {
	var all []string
	for _, e := range events {
		if keep(e) {
			all = append(all, e.Verb+" "+e.RequestURI)
		}
	}
	return all
}
