// SPDX-License-Identifier: Apache-2.0

package clusterctl

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cluster-chandler/chandler/test/audit"
)

// requests are those that a user made since a moment, up to now.
func (s *server) requests(t *testing.T, user string, since time.Time) []audit.Event {
	t.Helper()
	return s.Audit.Beginning().Requests(t, func(e *audit.Event) bool {
		return e.User.Username == user && !e.RequestReceivedTimestamp.Time.Before(since)
	})
}

// by are the requests of a version of Chandler.
func by(version string, events []audit.Event) []audit.Event {
	return slices.DeleteFunc(slices.Clone(events), func(e audit.Event) bool { return e.UserAgent != "chandler/"+version })
}

// noted is the record that notes which ConfigMap its chart is in. The object has another UID after a move.
const noted = "/secrets/sh.helm.release.v1.settings.v"

// writesButNotes describes the requests that change something, but for those that write the note.
func writesButNotes(events []audit.Event) []string {
	return slices.DeleteFunc(writes(events), func(request string) bool {
		return strings.Contains(request, ": patch ") && strings.Contains(request, noted)
	})
}

// writes describes the requests that change something.
func writes(events []audit.Event) []string {
	var all []string
	for _, e := range events {
		if !slices.Contains([]string{"get", "list", "watch"}, e.Verb) && !strings.HasPrefix(e.RequestURI, "/apis/authorization.k8s.io/") && !strings.Contains(e.RequestURI, "dryRun=All") {
			all = append(all, e.UserAgent+": "+e.Verb+" "+e.RequestURI)
		}
	}
	return all
}
