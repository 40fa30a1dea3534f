// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"net/http"
	"sync/atomic"
	"testing"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
)

// A /apis whose body breaks off must not make the older APIs the newest.
func TestTagOfABrokenAnswer(t *testing.T) {
	for name, brokenBody := range map[string]bool{"cut off": true, "too many": false} {
		t.Run(name, func(t *testing.T) {
			f, s := startFleet(t, quick()), newServer(t)
			one := map[string]apidiscoveryv2.DiscoveryFreshness{"one.example.com": current}
			two := map[string]apidiscoveryv2.DiscoveryFreshness{"one.example.com": current, "two.example.com": current}
			var state atomic.Int32 // 0: one; 1: two, broken; 2: two
			s.instead = func(w http.ResponseWriter, r *http.Request) bool {
				now := &server{}
				st := state.Load()
				tag := `"one"`
				offered := one
				if st > 0 {
					tag, offered = `"two"`, two
				}
				if r.URL.Path == "/apis" && r.Header.Get("If-None-Match") == tag {
					w.WriteHeader(http.StatusNotModified)
					return true
				}
				if r.URL.Path == "/apis" && st == 1 {
					w.Header().Set("ETag", tag)
					w.Header().Set("Content-Type", "application/json")
					if brokenBody {
						w.Header().Set("Content-Length", "100000")
					}
					_, _ = w.Write([]byte("{\"kind\""))
					return true
				}
				offers(now, offered)
				return now.instead(tagged{w, tag}, r)
			}
			f.add("a/b", s.kubeconfig())
			conn := f.connected(t, "a/b")
			if _, err := conn.Facts(t.Context()); err != nil {
				t.Fatal(err)
			}
			state.Store(1)
			conn.InvalidateFacts()
			_, err := conn.Facts(t.Context())
			t.Logf("broken: %v", err)
			state.Store(2)
			facts, err := conn.Facts(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if !facts.Has("two.example.com/v1") {
				t.Errorf("older APIs are taken for the newest: %v", facts.APIVersions)
			}
		})
	}
}
