// SPDX-License-Identifier: Apache-2.0

package auth_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/cluster-chandler/chandler/fleet/budget"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/source/auth"
)

const mebibyte = 1 << 20

// hosts answer namespaces.
type hosts struct{ memory *budget.Budget }

func newHosts() *hosts {
	return &hosts{budget.New(budget.Limits{All: 96 * mebibyte, Namespace: 48 * mebibyte})}
}

type transport func(*http.Request) (*http.Response, error)

func (t transport) RoundTrip(request *http.Request) (*http.Response, error) { return t(request) }

// read reads an answer of at most 32 MiB. Its length is negative if it isn't known.
func (h *hosts) read(ctx context.Context, namespace string, body io.Reader, length int64) ([]byte, error) {
	host := transport(func(*http.Request) (*http.Response, error) {
		return &http.Response{Body: closing(body), ContentLength: length}, nil
	})
	ctx = budget.WithTenant(ctx, budget.Tenant{Namespace: namespace})
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+namespace+".example.org/a.tgz", nil)
	if err != nil {
		return nil, err
	}
	response, err := (&auth.Counting{RoundTripper: host, Memory: h.memory, Most: 32 * mebibyte}).RoundTrip(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	return io.ReadAll(response.Body)
}

func closing(r io.Reader) io.ReadCloser {
	if closer, ok := r.(io.ReadCloser); ok {
		return closer
	}
	return io.NopCloser(r)
}

// stuck begins an answer. It sends the rest of so many bytes once it may, and no more until it is closed.
func (h *hosts) stuck(t *testing.T, namespace string, bytesSent int, length int64, more <-chan struct{}) (ended <-chan error) {
	t.Helper()
	body, host := io.Pipe()
	done := make(chan error, 1)
	go func() {
		_, err := h.read(t.Context(), namespace, body, length)
		done <- err
	}()
	first := min(bytesSent, 64<<10)
	if _, err := host.Write(make([]byte, first)); err != nil {
		t.Fatal(err)
	}
	go func() {
		<-more
		_, _ = host.Write(make([]byte, bytesSent-first)) // it may have no room
	}()
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
			h := newHosts()
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			var held []<-chan error
			more := make(chan struct{})
			for range 12 {
				held = append(held, h.stuck(t, "mallory", tc.sent, tc.length, more))
			}
			close(more) // earlier, the first ones might have all the room before the last one begins
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
	h := newHosts()
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

// An answer whose length isn't known counts more than it has while it is read, and then what it has until it is released.
func TestAnswersCountWhatTheyHave(t *testing.T) {
	const length = 65 << 10
	h := newHosts()
	ctx, release := budget.Holding(t.Context())
	if _, err := h.read(ctx, "team", strings.NewReader(strings.Repeat("a", length)), -1); err != nil {
		t.Fatal(err)
	}
	if usage := h.memory.Usage(); usage.Claimed != length {
		t.Errorf("an answer of %d bytes counts %d", length, usage.Claimed)
	}
	release()
	if usage := h.memory.Usage(); usage.Claimed != 0 {
		t.Errorf("in the end %+v is held", usage)
	}
}

// An answer waits for memory until its request ends. Then it says so.
func TestAnswersWaitForMemory(t *testing.T) {
	for name, ends := range map[string]bool{"until there is some": false, "until the request ends": true} {
		t.Run(name, func(t *testing.T) {
			h := newHosts()
			others := h.memory.Claim(budget.Tenant{Namespace: "team"}, 48*mebibyte)
			if !others.Try(48 * mebibyte) {
				t.Fatal("there is no memory")
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			done := make(chan error, 1)
			go func() {
				_, err := h.read(ctx, "team", strings.NewReader("a"), 1)
				done <- err
			}()
			for h.memory.Usage().Waiting == 0 {
				runtime.Gosched()
			}
			if ends {
				cancel()
			} else {
				others.End()
			}
			err := <-done
			if failed, _ := errors.AsType[*failure.Error](err); ends != (failed != nil && failed.Reason == failure.SourceUnavailable) {
				t.Errorf("got %v", err)
			}
			others.End()
			if usage := h.memory.Usage(); usage.Claimed != 0 {
				t.Errorf("in the end %+v is held", usage)
			}
		})
	}
}
