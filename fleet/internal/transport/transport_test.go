// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/connrotation"
	"k8s.io/utils/clock"

	"github.com/cluster-chandler/chandler/fleet/budget"
	"github.com/cluster-chandler/chandler/fleet/internal/answer"
	"github.com/cluster-chandler/chandler/fleet/kubeconfig"
	"github.com/cluster-chandler/chandler/fleet/limits"
)

// A TCP connection that comes about while its cluster is removed would outlive that.
func TestDialThatEndsAfterTheConnection(t *testing.T) {
	ours, theirs := net.Pipe()
	defer func() { _ = theirs.Close() }()
	var tr Transport
	tr.dialer = connrotation.NewDialer(func(context.Context, string, string) (net.Conn, error) {
		tr.Shut()
		return ours, nil
	})
	if _, err := tr.dial(t.Context(), "tcp", "a:443"); !errors.Is(err, ErrDisconnected) {
		t.Errorf("dialled: %v", err)
	}
	if err := ours.SetDeadline(time.Time{}); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("it isn't closed: %v", err)
	}
}

// deadline notes how long a request may take.
type deadline struct{ left time.Duration }

func (d *deadline) RoundTrip(r *http.Request) (*http.Response, error) {
	at, _ := r.Context().Deadline()
	d.left = time.Until(at)
	body, err := json.Marshal(metav1.Status{})
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(string(body)))}, err
}

// TestWatchesMayTakeTheirTime and no longer than a while more.
func TestWatchesMayTakeTheirTime(t *testing.T) {
	server, err := url.Parse("https://a:6443")
	if err != nil {
		t.Fatal(err)
	}
	base := &deadline{}
	own := &Transport{server: server, base: base, bounds: answer.NewBounds(limits.None, clock.RealClock{}, nil, budget.Tenant{})}
	own.credentials.Store(&kubeconfig.Credentials{})
	for query, want := range map[string]time.Duration{"?watch=true&timeoutSeconds=3600": time.Hour + watchTimeout, "?watch=true": watchTimeout} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.String()+"/api/v1/pods"+query, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := own.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if base.left > want || base.left < want-time.Minute {
			t.Errorf("%s may take %s, want %s", query, base.left, want)
		}
	}
}

// TestSilence tells a server that doesn't answer from a caller that went away.
func TestSilence(t *testing.T) {
	began := make(chan struct{}, 2)
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		began <- struct{}{}
		<-r.Context().Done()
	}))
	defer s.Close()
	defer s.CloseClientConnections()
	var told atomic.Int32
	tr, err := New(Options{
		Kubeconfig: &kubeconfig.Config{Endpoint: kubeconfig.Endpoint{Server: s.URL}}, AllowLoopback: true, ListTimeout: time.Hour,
		HeaderTimeout: 100 * time.Millisecond, Limits: limits.None, Clock: clock.RealClock{}, Unanswered: func() { told.Add(1) },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Shut()
	ask := func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := tr.RoundTrip(request)
		if err == nil {
			_ = response.Body.Close()
		}
		return err
	}
	if err := ask(t.Context()); err == nil || told.Load() == 0 {
		t.Errorf("silence isn't noticed: %v", err)
	}
	<-began
	tr.base.(*http.Transport).ResponseHeaderTimeout = 0
	told.Store(0)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-began; tr.closed.Store(true); cancel() }() // closed, so that the end of the TCP connection isn't counted
	if err := ask(ctx); err == nil || told.Load() > 0 {
		t.Errorf("a caller that went away counts as silence: %v", err)
	}
}
