// SPDX-License-Identifier: Apache-2.0

package reviews_test

import (
	"bufio"
	"crypto/tls"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/pki"
	"github.com/cluster-chandler/chandler/test/wait"
	"github.com/cluster-chandler/chandler/webhooks/reviews"
)

// with returns the usual limits of all kinds, changed.
func with(change func(*reviews.Limits)) map[reviews.Kind]reviews.Limits {
	limits := reviews.DefaultLimits()
	for kind, l := range maps.All(limits) {
		change(&l)
		limits[kind] = l
	}
	return limits
}

// statusOf reads the answer on a connection; 0 is a connection that ended without one.
func statusOf(conn net.Conn) int {
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0
	}
	_ = response.Body.Close()
	return response.StatusCode
}

func TestWhatIsRefused(t *testing.T) {
	s := serve(t, echo, nil)
	unknown := func(r *http.Request) { r.ContentLength = -1 }
	spaces := func(n int) string { return strings.Repeat(" ", n-2) + "{}" }
	for _, path := range []string{admission, conversion} {
		s.expect(path, spaces(7<<20), http.StatusOK)
		s.expect(path, spaces(7<<20+1), http.StatusRequestEntityTooLarge)
	}
	s.expect(hook, spaces(1<<20), http.StatusOK)
	s.expect(hook, spaces(1<<20+1), http.StatusRequestEntityTooLarge)
	for _, path := range []string{admission, conversion, hook} {
		s.expect(path, "", http.StatusOK)
		s.expect(path, "{}", http.StatusLengthRequired, unknown)
		s.expect(path, "["+strings.Repeat("{},", 200_000)+"{}]", http.StatusRequestEntityTooLarge)
	}
	if status := statusOf(s.begin(api, "/"+strings.Repeat("x", 20<<10), 2, "{}")); status != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("headers of 20 KiB: %d; want %d", status, http.StatusRequestHeaderFieldsTooLarge)
	}
}

// Clients that say that they send much, and don't, keep nobody from an answer.
func TestSilentClients(t *testing.T) {
	s := serve(t, echo, with(func(l *reviews.Limits) { l.Grace = time.Hour }))
	for _, path := range []string{admission, conversion, hook} {
		for range 20 {
			s.begin(api, path, 1<<20, "{")
			s.begin(stranger, path, 1<<20, "{")
		}
	}
	for _, path := range []string{admission, conversion, hook} {
		s.expect(path, "{}", http.StatusOK)
	}
}

func TestSlowBodyIsEnded(t *testing.T) {
	s := serve(t, echo, with(func(l *reviews.Limits) { l.Grace = 10 * time.Millisecond }))
	if status := statusOf(s.begin(api, admission, 1<<20, "{")); status != http.StatusRequestTimeout {
		t.Errorf("%d; want %d", status, http.StatusRequestTimeout)
	}
}

// Where half of a body is more than there is room for, the slowest body of the client that holds most makes room.
func TestRoomIsForTheQuick(t *testing.T) {
	const part = 200 << 10
	for name, from := range map[string]string{"others": stranger, "its own": api} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, echo, with(func(l *reviews.Limits) { l.Room, l.Grace = 1<<20, time.Hour }))
			var slow []net.Conn
			for range 8 {
				slow = append(slow, s.begin(from, admission, 1<<20, strings.Repeat(" ", part)))
			}
			s.awaitRoom(api, strings.Repeat(" ", 400<<10)+"{}")
			ended := make(chan int, len(slow))
			for _, conn := range slow {
				go func() { ended <- statusOf(conn) }()
			}
			if status := <-ended; status != http.StatusServiceUnavailable {
				t.Errorf("a slow one is answered %d; want %d", status, http.StatusServiceUnavailable)
			}
		})
	}
}

// A client that holds little isn't ended for one that holds more, however slow it is.
func TestShareOfEachClient(t *testing.T) {
	s := serve(t, echo, with(func(l *reviews.Limits) { l.Room, l.Grace = 1<<20, time.Hour }))
	body := strings.Repeat(" ", 100<<10) + "{}"
	slow := s.begin(api, admission, len(body), body[:50<<10])
	for range 20 {
		s.begin(stranger, admission, 1<<20, strings.Repeat(" ", 200<<10))
	}
	s.awaitRoom(stranger, strings.Repeat(" ", 500<<10)+"{}")
	if _, err := io.WriteString(slow, body[50<<10:]); err != nil {
		t.Fatal(err)
	}
	if status := statusOf(slow); status != http.StatusOK {
		t.Errorf("%d; want %d", status, http.StatusOK)
	}
}

// While one kind has no slot left, the others answer.
func TestKindsHaveSlotsOfTheirOwn(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	var busy atomic.Int32
	s := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		if body, _ := io.ReadAll(r.Body); string(body) != "{}" {
			busy.Add(1)
			<-release
		}
	}, nil)
	for _, path := range []string{admission, conversion, hook} {
		limit := 7 << 20
		if path == hook {
			limit = 1 << 20
		}
		s.expect(path, "{}", http.StatusOK)
		before := busy.Load()
		s.begin(stranger, path, limit, strings.Repeat(" ", limit))
		wait.Until(t, patience, "the slots are to be taken", func() error {
			if busy.Load() == before {
				return io.ErrNoProgress
			}
			return nil
		})
	}
	short := func(path string) int {
		conn := s.begin(api, path, 2, "{}")
		_ = conn.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
		return statusOf(conn)
	}
	if status := short(admission); status != 0 {
		t.Errorf("%d; want none: all slots are taken", status)
	}
}

// A client that doesn't read its answer holds no slot.
func TestUnreadAnswers(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 8<<20)) }, nil)
	for range 5 {
		s.begin(stranger, conversion, 2, "{}")
	}
	s.expect(conversion, strings.Repeat(" ", 7<<20-2)+"{}", http.StatusOK)
}

// Connections of one client leave room for those of others: what was of no use for longest is closed.
func TestConnections(t *testing.T) {
	s := serve(t, echo, nil)
	idle := func(from string) net.Conn {
		conn := s.begin(from, admission, 2, "{}")
		if status := statusOf(conn); status != http.StatusOK {
			t.Fatal(status)
		}
		return conn
	}
	others := idle(api)
	first := idle(stranger)
	for range 1000 {
		s.dial(stranger)
	}
	must.Succeed(t, first.SetReadDeadline(time.Now().Add(patience)))
	if _, err := first.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the first connection is still open: %v", err)
	}
	if _, err := io.WriteString(others, "POST "+admission+" HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}"); err != nil {
		t.Fatal(err)
	}
	if status := statusOf(others); status != http.StatusOK {
		t.Errorf("another client's connection: %d", status)
	}
}

func TestStreamsOfAConnection(t *testing.T) {
	s := serve(t, echo, nil)
	conn := tls.Client(s.dial(api), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	framer := http2.NewFramer(conn, conn)
	must.Succeed(t, framer.WriteSettings())
	frame, err := framer.ReadFrame()
	must.Succeed(t, err)
	settings, ok := frame.(*http2.SettingsFrame)
	if !ok {
		t.Fatalf("%T", frame)
	}
	for id, want := range map[http2.SettingID]uint32{http2.SettingMaxConcurrentStreams: 100, http2.SettingMaxHeaderListSize: 16<<10 + 320} {
		if value, ok := settings.Value(id); !ok || value > want {
			t.Errorf("%s is %d, %t; want at most %d", id, value, ok, want)
		}
	}
}

// Admission and hooks answer those alone that an authority vouches for. API servers show no certificate when they convert.
func TestClientCertificates(t *testing.T) {
	authority, err := pki.NewAuthority("clients")
	must.Succeed(t, err)
	file := filepath.Join(t.TempDir(), "ca.crt")
	must.Succeed(t, os.WriteFile(file, authority.Certificate, 0o600))
	s := serve(t, echo, nil, func(o *reviews.Options) { o.ClientCAFile = file })
	s.expect(admission, "{}", http.StatusUnauthorized)
	s.expect(hook, "{}", http.StatusUnauthorized)
	s.expect(conversion, "{}", http.StatusOK)
}
