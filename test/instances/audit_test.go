// SPDX-License-Identifier: Apache-2.0

package instances

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/cluster-chandler/chandler/test/audit"
)

// event is an answered request.
type event = audit.Event

// both are the requests that pass both.
func both(a, b func(*event) bool) func(*event) bool {
	return func(e *event) bool { return a(e) && b(e) }
}

// wrote says whether the request changed an object, or would have.
func wrote(e *event) bool { return audit.Write(e) && e.ObjectRef != nil }

// reads says whether the request reads objects of one of the resources.
func reads(resources ...string) func(*event) bool {
	return func(e *event) bool {
		return e.ObjectRef != nil && slices.Contains(resources, e.ObjectRef.Resource) && slices.Contains([]string{"get", "list", "watch"}, e.Verb)
	}
}

func succeeded(e *event) bool {
	return e.ResponseStatus != nil && e.ResponseStatus.Code < http.StatusBadRequest
}

// described are the requests in words.
func described(events []event) []string {
	var all []string
	for i := range events {
		all = append(all, describe(&events[i]))
	}
	return all
}

func describe(e *event) string {
	code := int32(0)
	if e.ResponseStatus != nil {
		code = e.ResponseStatus.Code
	}
	return fmt.Sprintf("%s %s %s %s: %d", e.RequestReceivedTimestamp.Format("15:04:05.000"), e.User.Username, e.Verb, e.RequestURI, code)
}

// lines are texts on lines of their own.
func lines(texts []string) string { return "\t" + strings.Join(texts, "\n\t") }

// expectNone fails the test if there are requests.
func expectNone(t *testing.T, events []event, reason string) {
	t.Helper()
	const shown = 10
	if len(events) > 0 {
		t.Errorf("%s; there are %d requests, the first are:\n%s", reason, len(events), lines(described(events[:min(len(events), shown)])))
	}
}
