// SPDX-License-Identifier: Apache-2.0

package auth_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/source/auth"
	"github.com/cluster-chandler/chandler/internal/source/reference"
)

const mebibyte = 1 << 20

// hosts reads answers for namespaces, at a time that stands still.
type hosts struct {
	*auth.Access
	clock *clocktesting.FakeClock
}

func newHosts(t *testing.T) *hosts {
	clock := clocktesting.NewFakeClock(time.Now())
	return &hosts{auth.New(auth.Options{CredentialsDir: t.TempDir(), Clock: clock}), clock}
}

// read reads an answer of at most 32 MiB. Its length is negative if it isn't known.
func (h *hosts) read(ctx context.Context, namespace string, body io.Reader, length int64) ([]byte, error) {
	ref := reference.Reference{Namespace: namespace, Chart: addonsv1.ChartSource{HTTP: &addonsv1.HTTPSource{URL: "https://" + namespace + ".example.org/a.tgz"}}}
	return auth.Ask(ctx, h.Access, ref, func(ctx context.Context, c *auth.Client) ([]byte, error) {
		return c.Read(ctx, closing(body), length, "the archive", 32*mebibyte)
	})
}

func closing(r io.Reader) io.ReadCloser {
	if closer, ok := r.(io.ReadCloser); ok {
		return closer
	}
	return io.NopCloser(r)
}

// stuck begins an answer that has sent so many bytes, and sends no more until it is closed.
func (h *hosts) stuck(t *testing.T, namespace string, bytesSent int, length int64) (ended <-chan error) {
	t.Helper()
	body, host := io.Pipe()
	done := make(chan error, 1)
	go func() {
		_, err := h.read(t.Context(), namespace, body, length)
		done <- err
	}()
	first := min(bytesSent, mebibyte)
	if _, err := host.Write(make([]byte, first)); err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = host.Write(make([]byte, bytesSent-first)) }() // it may have no room
	t.Cleanup(func() { _ = host.Close() })
	return done
}

// Twelve hosts of one tenant that send slowly, or claim to send much, keep no other from reading.
func TestSlowHostsOfOneTenantLeaveRoom(t *testing.T) {
	for name, tc := range map[string]struct {
		sent   int
		length int64
	}{
		"a byte, of no known length":  {1, -1},
		"a byte of 32 MiB":            {1, 32 * mebibyte},
		"what a minute has room for":  {600 << 10, -1},
		"much, and then no more":      {2 * mebibyte, -1},
		"much of 32 MiB, and no more": {2 * mebibyte, 32 * mebibyte},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHosts(t)
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			var held []<-chan error
			for range 12 {
				held = append(held, h.stuck(t, "mallory", tc.sent, tc.length))
			}
			content := make([]byte, 10*mebibyte)
			for _, length := range []int64{-1, int64(len(content))} {
				if got, err := h.read(ctx, "victim", bytes.NewReader(content), length); err != nil || len(got) != len(content) {
					t.Errorf("of length %d: %d bytes, %v", length, len(got), err)
				}
			}
			for _, ended := range held {
				select {
				case err := <-ended:
					t.Errorf("an answer ended meanwhile: %v", err)
				default:
				}
			}
		})
	}
}

// Large answers of one namespace are read one after the other, and all of them.
func TestLargeAnswersOfOneTenantAreAllRead(t *testing.T) {
	h := newHosts(t)
	done := make(chan error, 8)
	for range cap(done) {
		go func() {
			_, err := h.read(t.Context(), "team", io.LimitReader(strings.NewReader(strings.Repeat("x", 20*mebibyte)), 20*mebibyte), -1)
			done <- err
		}()
	}
	for range cap(done) {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// A host has to send so much in each ten seconds.
func TestHostsHaveToSendFastEnough(t *testing.T) {
	for name, tc := range map[string]struct {
		each   int // bytes, in each window
		reason string
	}{"slow": {50 << 10, failure.SourceUnavailable}, "fast enough": {100 << 10, ""}} {
		t.Run(name, func(t *testing.T) {
			h := newHosts(t)
			body, host := io.Pipe()
			done := make(chan error, 1)
			go func() {
				_, err := h.read(t.Context(), "team", body, -1)
				done <- err
			}()
			windows := 10
			if tc.reason != "" {
				windows = 10_000 // some may end while nobody reads
			}
			for range windows {
				for !h.clock.HasWaiters() && len(done) == 0 {
					runtime.Gosched()
				}
				if _, err := host.Write(make([]byte, tc.each)); err != nil {
					break
				}
				_, _ = host.Write(nil) // what was sent before is counted by now
				h.clock.Step(10 * time.Second)
			}
			_ = host.Close()
			err := <-done
			known, _ := errors.AsType[*failure.Error](err)
			if (err == nil) != (tc.reason == "") || known != nil && known.Reason != tc.reason {
				t.Errorf("got %v", err)
			}
		})
	}
}
