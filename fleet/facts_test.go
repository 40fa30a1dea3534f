// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestFacts(t *testing.T) {
	f, s := startFleet(t, quick()), newServer(t)
	conn := f.join(t, s)

	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			facts, err := conn.Facts(t.Context())
			want := []string{"apps/v1", "apps/v1/Deployment", "v1", "v1/Pod"}
			if err != nil || !slices.Equal(facts.APIVersions, want) || facts.KubernetesVersion != "v1.36.3" {
				t.Errorf("%+v, %v", facts, err)
			}
		})
	}
	wg.Wait()
	expect := func(want int32, why string) {
		t.Helper()
		if _, err := conn.Facts(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := s.discoveries.Load(); n != want {
			t.Errorf("%s: %d discoveries, want %d", why, n, want)
		}
	}
	expect(1, "callers share one")
	conn.InvalidateFacts()
	expect(2, "invalidated")
	s.set("v1.37.0", "secret-token")
	await(t, "it has the previous version", func() bool { return conn.Version() == "v1.37.0" })
	expect(3, "a new version")
	if facts, _ := conn.Facts(t.Context()); facts.KubernetesVersion != "v1.37.0" {
		t.Errorf("%+v", facts)
	}
}

// A caller that can't wait isn't held up by a discovery that hangs.
func TestFactsOfAHangingServer(t *testing.T) {
	o := quick()
	o.ProbeInterval = time.Hour
	f, s := startFleet(t, o), newServer(t)
	var hangs atomic.Bool
	var first sync.Once
	began, ends := make(chan struct{}), make(chan struct{})
	s.instead = func(http.ResponseWriter, *http.Request) bool {
		if hangs.Load() {
			first.Do(func() { close(began); <-ends })
		}
		return false
	}
	conn := f.join(t, s)
	s.status.Store(http.StatusServiceUnavailable)
	if _, err := conn.Facts(t.Context()); err == nil {
		t.Error("facts of a server that fails")
	}
	s.status.Store(0)
	if _, err := conn.Facts(t.Context()); err != nil {
		t.Errorf("an error must not be kept: %v", err)
	}
	hangs.Store(true)
	conn.InvalidateFacts()
	var wg sync.WaitGroup
	wg.Go(func() { _, _ = conn.Facts(context.Background()) })
	<-began
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := conn.Facts(ctx); err == nil {
		t.Error("no error")
	}
	close(ends)
	wg.Wait()
}
