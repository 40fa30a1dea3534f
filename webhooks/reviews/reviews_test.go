// SPDX-License-Identifier: Apache-2.0

package reviews_test

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/pki"
	"github.com/cluster-chandler/chandler/test/wait"
	"github.com/cluster-chandler/chandler/webhooks/reviews"
)

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
	s := serve(t, echo)
	spaces := func(n int) string { return strings.Repeat(" ", n-2) + "{}" }
	for path, limit := range map[string]int{admission: 3 << 20, conversion: 3 << 20, hook: 1 << 20} {
		s.expect(path, "", http.StatusOK)
		s.expect(path, spaces(limit), http.StatusOK)
		s.expect(path, spaces(limit+1), http.StatusRequestEntityTooLarge)
		s.expect(path, spaces(limit+1), http.StatusRequestEntityTooLarge, func(r *http.Request) { r.ContentLength = -1 })
		s.expect(path, "["+strings.Repeat("{},", 50_000)+"{}]", http.StatusRequestEntityTooLarge)
	}
	if status := statusOf(s.begin(api, "/"+strings.Repeat("x", 20<<10), 2, "{}")); status != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("headers of 20 KiB: %d; want %d", status, http.StatusRequestHeaderFieldsTooLarge)
	}
}

// Clients that say that they send much, and don't, keep no other client from an answer.
func TestSilentClients(t *testing.T) {
	for _, path := range []string{admission, conversion, hook} {
		t.Run(path, func(t *testing.T) {
			s := serve(t, echo, func(o *reviews.Options) { o.ReadTimeout = time.Hour })
			for range 100 {
				_, _ = s.tryToBegin(stranger, path, 1<<20, "{")
			}
			s.expect(path, "{}", http.StatusOK)
		})
	}
}

// The reviews of an API server are answered while another client sends as much as it can.
func TestFlood(t *testing.T) {
	s := serve(t, echo)
	large := strings.Repeat(" ", 7<<20)
	var strangers sync.WaitGroup
	for range 300 {
		strangers.Go(func() { _, _ = s.ask(stranger, admission, large) })
	}
	review := strings.Repeat(" ", 1<<20) + "{}"
	for range 20 {
		s.expect(admission, review, http.StatusOK)
	}
	strangers.Wait()
}

func TestSlowBodyIsEnded(t *testing.T) {
	s := serve(t, echo, func(o *reviews.Options) { o.ReadTimeout = 100 * time.Millisecond })
	if status := statusOf(s.begin(api, admission, 1<<20, "{")); status != http.StatusRequestTimeout {
		t.Errorf("%d; want %d", status, http.StatusRequestTimeout)
	}
}

// Of each kind and client, four requests are answered at the same time, and the next ones wait. No other kind or client does.
func TestSlots(t *testing.T) {
	for path, other := range map[string]string{admission: conversion, conversion: admission, hook: admission} {
		t.Run(path, func(t *testing.T) {
			release := make(chan struct{})
			var answering atomic.Int32
			s := serve(t, func(_ http.ResponseWriter, r *http.Request) {
				if body, _ := io.ReadAll(r.Body); string(body) == "[]" {
					answering.Add(1)
					<-release
				}
			})
			var held []net.Conn
			for range 6 {
				held = append(held, s.begin(stranger, path, 2, "[]"))
			}
			wait.Until(t, patience, "the slots are to be taken", func() error {
				if is := answering.Load(); is < 4 {
					return fmt.Errorf("%d are", is)
				}
				return nil
			})
			s.expect(path, "{}", http.StatusOK)
			if status, err := s.ask(stranger, other, "{}"); err != nil || status != http.StatusOK {
				t.Errorf("the client's request of another kind: %d, %v", status, err)
			}
			if is := answering.Load(); is != 4 {
				t.Errorf("%d requests are answered at the same time", is)
			}
			close(release)
			for _, conn := range held {
				if status := statusOf(conn); status != http.StatusOK {
					t.Errorf("a request that had a slot, or waited for one: %d", status)
				}
			}
		})
	}
}

// Large requests are decoded one after the other. One that waits for that is answered later.
func TestLargeRequests(t *testing.T) {
	release, under := make(chan struct{}), make(chan struct{}, 2)
	s := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		if r.ContentLength > 2 {
			under <- struct{}{}
			<-release
		}
	})
	large := strings.Repeat(" ", 2<<20)
	first := s.begin(stranger, admission, len(large), large)
	<-under
	s.expect(admission, "{}", http.StatusOK)
	second := s.begin(api, admission, len(large), large)
	must.Succeed(t, second.SetReadDeadline(time.Now().Add(200*time.Millisecond)))
	if status := statusOf(second); status != 0 || len(under) > 0 {
		t.Errorf("beside another large request: %d", status)
	}
	close(release)
	must.Succeed(t, second.SetReadDeadline(time.Now().Add(patience)))
	for _, conn := range []net.Conn{first, second} {
		if status := statusOf(conn); status != http.StatusOK {
			t.Errorf("%d; want %d", status, http.StatusOK)
		}
	}
}

// A client that doesn't read its answers holds no slot of others.
func TestUnreadAnswers(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 8<<20)) })
	for range 10 {
		s.begin(stranger, conversion, 2, "{}")
	}
	s.expect(conversion, strings.Repeat(" ", 3<<20-2)+"{}", http.StatusOK)
}

// A client has at most 16 connections, and keeps them. Those of others stay open.
func TestConnections(t *testing.T) {
	s := serve(t, echo)
	idle := func(from string) net.Conn {
		conn := s.begin(from, admission, 2, "{}")
		if status := statusOf(conn); status != http.StatusOK {
			t.Fatal(status)
		}
		return conn
	}
	others, first := idle(api), idle(stranger)
	for range 15 {
		s.dial(stranger)
	}
	for range 50 {
		conn := s.dial(stranger)
		must.Succeed(t, conn.SetReadDeadline(time.Now().Add(5*time.Second))) // the server would wait longer for a handshake
		if _, err := conn.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("one too many is open: %v", err)
		}
	}
	for name, conn := range map[string]net.Conn{"another client's connection": others, "one of the sixteen": first} {
		if _, err := io.WriteString(conn, "POST "+admission+" HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}"); err != nil {
			t.Fatal(err)
		}
		if status := statusOf(conn); status != http.StatusOK {
			t.Errorf("%s: %d", name, status)
		}
	}
	must.Succeed(t, first.Close())
	wait.Until(t, patience, "there is to be room for another one", func() error {
		_, err := s.ask(stranger, admission, "{}")
		return err
	})
}

// On one connection of HTTP/2, requests that wait for a slot don't stop those that have one.
func TestStreamsThatWait(t *testing.T) {
	s := serve(t, echo)
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true, MaxConnsPerHost: 1,
	}
	defer transport.CloseIdleConnections()
	var requests sync.WaitGroup
	for range 24 {
		requests.Go(func() {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+s.address+admission, strings.NewReader(strings.Repeat(" ", 1<<20)))
			if err != nil {
				t.Error(err)
				return
			}
			response, err := transport.RoundTrip(request)
			if err != nil || response.ProtoMajor != 2 || response.StatusCode != http.StatusOK {
				t.Errorf("%+v, %v", response, err)
				return
			}
			_, _ = io.Copy(io.Discard, response.Body)
			_ = response.Body.Close()
		})
	}
	requests.Wait()
}

func TestStreamsOfAConnection(t *testing.T) {
	s := serve(t, echo)
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
	for id, want := range map[http2.SettingID]uint32{http2.SettingMaxConcurrentStreams: 32, http2.SettingInitialWindowSize: 64 << 10, http2.SettingMaxHeaderListSize: 16<<10 + 320} {
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
	s := serve(t, echo, func(o *reviews.Options) { o.ClientCAFile = file })
	s.expect(admission, "{}", http.StatusUnauthorized)
	s.expect(hook, "{}", http.StatusUnauthorized)
	s.expect(conversion, "{}", http.StatusOK)
}
