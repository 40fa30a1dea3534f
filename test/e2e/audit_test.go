// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// auditEvent is an answered request.
type auditEvent = auditv1.Event

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

// requests are those of a user that were answered since the mark, watches at
// their start. It returns all up to now.
func (m mark) requests(t *testing.T, user string) []auditv1.Event {
	t.Helper()
	events, _ := m.fence(t)
	return slices.DeleteFunc(events, func(e auditv1.Event) bool {
		return e.User.Username != user || e.Verb == "watch" && e.Stage != auditv1.StageResponseStarted
	})
}

// fence makes a request that stands out, and reads the log up to it.
func (m mark) fence(t *testing.T) (events []auditv1.Event, offset int64) {
	t.Helper()
	id := uuid.NewUUID()
	_, _ = m.server.clientset.CoreV1().ConfigMaps("default").Get(t.Context(), "fence-"+string(id), metav1.GetOptions{}) // there is none
	poll(t, 30*time.Second, "the audit log is to show an answered request", func() error {
		var err error
		events, offset, err = m.readUntil(id)
		return err
	})
	return events, offset
}

func (m mark) readUntil(id types.UID) ([]auditv1.Event, int64, error) {
	f, err := os.Open(m.server.auditLog)
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	if _, err := f.Seek(m.offset, io.SeekStart); err != nil {
		return nil, 0, err
	}
	var events []auditv1.Event
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
		var event auditv1.Event
		if json.Unmarshal(line, &event) != nil {
			continue // the mark was in the middle of a line
		}
		if event.ObjectRef != nil && event.ObjectRef.Name == "fence-"+string(id) {
			return events, offset, nil
		}
		events = append(events, event)
	}
}

// writes are the requests that change something, without those by which an instance
// says that it is there.
func writes(events []auditv1.Event) []string {
	return described(events, func(e auditv1.Event) bool {
		return !registers(e) && slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, e.Verb)
	})
}

// registers says whether a request is about an instance itself: its ProviderInstance,
// or whether it has the rights it needs.
func registers(e auditv1.Event) bool {
	return e.ObjectRef != nil && (e.ObjectRef.Resource == "providerinstances" || e.ObjectRef.Resource == "selfsubjectaccessreviews")
}

// reads are the requests for objects of a resource; of all names if none is given.
func reads(events []auditv1.Event, resource, name string, verbs ...string) []string {
	return described(events, func(e auditv1.Event) bool {
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

func described(events []auditv1.Event, keep func(auditv1.Event) bool) []string {
	var all []string
	for _, e := range events {
		if keep(e) {
			all = append(all, e.Verb+" "+e.RequestURI)
		}
	}
	return all
}
