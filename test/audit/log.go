// SPDX-License-Identifier: Apache-2.0

// Package audit reads the audit logs of API servers: what was asked for, by whom, and how it was answered.
package audit

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/cluster-chandler/chandler/test/wait"
)

// Log is the audit log of a running API server.
type Log struct {
	file   string
	server kubernetes.Interface
}

// Of returns the log that a server writes into the file.
func Of(server kubernetes.Interface, file string) *Log { return &Log{file: file, server: server} }

// Mark is a moment in a log.
type Mark struct {
	log    *Log
	offset int64
}

// Beginning is before all requests.
func (l *Log) Beginning() Mark { return Mark{log: l} }

// Mark returns this moment: what was answered before is before it.
func (l *Log) Mark(t testing.TB) Mark {
	t.Helper()
	begin := l.Beginning()
	if info, err := os.Stat(l.file); err == nil {
		begin.offset = info.Size()
	}
	_, end := begin.fence(t)
	return Mark{log: l, offset: end}
}

// Requests are those to keep of all that were answered since the mark, up to now; watches at their start.
func (m Mark) Requests(t testing.TB, keep func(*Event) bool) []Event {
	t.Helper()
	events, _ := m.fence(t)
	return slices.DeleteFunc(events, func(e Event) bool {
		return e.Verb == "watch" && e.Stage != auditv1.StageResponseStarted || !keep(&e)
	})
}

// fence makes a request that stands out, and reads the log up to it.
func (m Mark) fence(t testing.TB) (events []Event, end int64) {
	t.Helper()
	name := "fence-" + string(uuid.NewUUID())
	_, _ = m.log.server.CoreV1().ConfigMaps("default").Get(t.Context(), name, metav1.GetOptions{}) // there is none
	wait.Until(t, 30*time.Second, "the audit log is to show an answered request", func() error {
		events, end = nil, 0
		err := read(m.log.file, m.offset, func(e *Event, offset int64) (more bool) {
			if e.ObjectRef != nil && e.ObjectRef.Name == name {
				end = offset
				return false
			}
			events = append(events, *e)
			return true
		})
		if err == nil && end == 0 {
			err = fmt.Errorf("%s isn't there yet", name)
		}
		return err
	})
	return events, end
}
