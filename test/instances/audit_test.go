// SPDX-License-Identifier: Apache-2.0

package instances

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/cluster-chandler/chandler/test/wait"
)

// event is an answered request.
type event = auditv1.Event

// mark is a moment in a server's audit log.
type mark struct {
	server *server
	offset int64
}

// mark returns this moment: what was answered before is before it.
func (s *server) mark(t *testing.T) mark {
	t.Helper()
	begin := mark{server: s}
	if info, err := os.Stat(s.auditLog); err == nil {
		begin.offset = info.Size()
	}
	_, end := begin.fence(t)
	return mark{server: s, offset: end}
}

// beginning is before all requests.
func (s *server) beginning() mark { return mark{server: s} }

// requests are those that were answered since the mark, up to now; watches at their start.
func (m mark) requests(t *testing.T, keep func(*event) bool) []event {
	t.Helper()
	events, _ := m.fence(t)
	return slices.DeleteFunc(events, func(e event) bool {
		return e.Verb == "watch" && e.Stage != auditv1.StageResponseStarted || !keep(&e)
	})
}

// fence makes a request that stands out, and reads the log up to it.
func (m mark) fence(t *testing.T) (events []event, offset int64) {
	t.Helper()
	id := uuid.NewUUID()
	_, _ = m.server.clientset.CoreV1().ConfigMaps("default").Get(t.Context(), "fence-"+string(id), metav1.GetOptions{}) // there is none
	wait.Until(t, 30*time.Second, "the audit log is to show an answered request", func() error {
		var err error
		events, offset, err = m.readUntil(id)
		return err
	})
	return events, offset
}

func (m mark) readUntil(id types.UID) ([]event, int64, error) {
	f, err := os.Open(m.server.auditLog)
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	if _, err := f.Seek(m.offset, io.SeekStart); err != nil {
		return nil, 0, err
	}
	var events []event
	offset := m.offset
	for lines := bufio.NewReader(f); ; {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil, 0, fmt.Errorf("request %s isn't in the audit log yet", id)
		}
		if err != nil {
			return nil, 0, err
		}
		offset += int64(len(line))
		var e event
		if json.Unmarshal(line, &e) != nil {
			continue // the mark was in the middle of a line
		}
		if e.ObjectRef != nil && e.ObjectRef.Name == "fence-"+string(id) {
			return events, offset, nil
		}
		events = append(events, e)
	}
}

// by are the requests of a user.
func by(user string) func(*event) bool { return func(e *event) bool { return e.User.Username == user } }

// both are the requests that pass both.
func both(a, b func(*event) bool) func(*event) bool {
	return func(e *event) bool { return a(e) && b(e) }
}

var writeVerbs = []string{"create", "update", "patch", "delete", "deletecollection"}

// wrote says whether the request changed something, or would have.
func wrote(e *event) bool { return slices.Contains(writeVerbs, e.Verb) && e.ObjectRef != nil }

// denied says whether the server refused the request for want of rights.
func denied(e *event) bool {
	return e.ResponseStatus != nil && e.ResponseStatus.Code == http.StatusForbidden
}

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

// expectNone fails the test if there are requests.
func expectNone(t *testing.T, events []event, reason string) {
	t.Helper()
	const shown = 10
	if len(events) > 0 {
		t.Errorf("%s; there are %d requests, the first are:\n%s", reason, len(events), lines(described(events[:min(len(events), shown)])))
	}
}
