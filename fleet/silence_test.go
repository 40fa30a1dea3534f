// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"
)

// TestSilenceIsNoticed has probes so rarely that nothing but a request without an answer can tell.
func TestSilenceIsNoticed(t *testing.T) {
	o := quick()
	o.ProbeInterval, o.ProbeRetry, o.ProbeTimeout = time.Hour, 20*time.Millisecond, 5*time.Second
	o.Timeout = 2 * time.Second
	f, s := startFleet(t, o), newServer(t)
	began := make(chan struct{}, 100)
	s.extra = func(_ http.ResponseWriter, r *http.Request) {
		began <- struct{}{}
		<-r.Context().Done()
	}
	conn := f.join(t, s)
	client, err := conn.Discovery(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ask := func(ctx context.Context) error {
		return client.RESTClient().Get().AbsPath("/extra").Do(ctx).Error()
	}
	probes := s.probes.Load()

	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-began; cancel() }()
	if err := ask(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("%v", err)
	}

	if err := ask(t.Context()); err == nil {
		t.Fatal("answered")
	}
	await(t, "no probe after a request without an answer", func() bool { return s.probes.Load() != probes })
	if conn.Context().Err() != nil {
		t.Error("disconnected, though the probe was answered")
	}

	s.CloseClientConnections()
	s.Listener.Close()
	if err := ask(t.Context()); err == nil {
		t.Fatal("answered")
	}
	f.expect(t, "a/b", PhaseUnreachable, ReasonConnectionRefused)
	if conn.Context().Err() == nil {
		t.Error("connected still")
	}
}

// An API server that is replaced by a newer one ends its connections. Nobody has to ask it for
// something to find that out.
func TestEndedConnectionIsProbed(t *testing.T) {
	o := quick()
	o.ProbeInterval, o.ProbeRetry = time.Hour, 20*time.Millisecond
	f, s := startFleet(t, o), newServer(t)
	conn := f.join(t, s)
	probes := s.probes.Load()
	s.CloseClientConnections()
	await(t, "no probe after the end of the connection", func() bool { return s.probes.Load() != probes })
	if conn.Context().Err() != nil {
		t.Error("disconnected, though the probe was answered")
	}
}
