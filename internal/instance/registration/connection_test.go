// SPDX-License-Identifier: Apache-2.0

package registration_test

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/cluster-chandler/chandler/internal/instance/registration"
	"github.com/cluster-chandler/chandler/test/must"
)

// TestOwnConnection has heartbeats wait for no request of the controllers: neither behind them on a connection, nor for
// their rate limit.
func TestOwnConnection(t *testing.T) {
	var mu sync.Mutex
	connections := map[string]string{}
	held, release := make(chan struct{}), make(chan struct{})
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		connections[r.UserAgent()] = r.RemoteAddr
		mu.Unlock()
		if r.UserAgent() == "controllers" {
			close(held)
			<-release
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"gitVersion":"v1.36.3"}`))
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	shared := &rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true}, QPS: 1e-6, Burst: 1}
	clientOf := func(config *rest.Config, name string) *discovery.DiscoveryClient {
		config = rest.CopyConfig(config)
		config.UserAgent = name
		client, err := discovery.NewDiscoveryClientForConfig(config)
		must.Succeed(t, err)
		return client
	}
	done := make(chan error, 1)
	go func() {
		_, err := clientOf(shared, "controllers").ServerVersion()
		done <- err
	}()
	<-held
	heartbeats := clientOf(registration.OwnConnection(shared), "heartbeat")
	for range 10 {
		if _, err := heartbeats.ServerVersion(); err != nil {
			t.Fatal(err)
		}
	}
	close(release)
	must.Succeed(t, <-done)
	if connections["heartbeat"] == connections["controllers"] {
		t.Error("they share a connection")
	}
}
