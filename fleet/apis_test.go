// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"weak"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"
)

// offers has a server offer groups beside its own, each with the kind Thing, by their freshness.
func offers(s *server, groups map[string]apidiscoveryv2.DiscoveryFreshness) {
	s.instead = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/apis" {
			return false
		}
		var offered []apidiscoveryv2.APIGroupDiscovery
		for name, freshness := range groups {
			offered = append(offered, groupOf(name, "Thing", freshness))
		}
		w.Header().Set("ETag", `"the same for all"`)
		writeGroups(w, offered...)
		return true
	}
}

const current, stale = apidiscoveryv2.DiscoveryFreshnessCurrent, apidiscoveryv2.DiscoveryFreshnessStale

// Clusters that offer the same share what is known of it, whatever they call it. What nobody has any
// more is gone.
func TestClustersShareTheirAPIs(t *testing.T) {
	f := startFleet(t, quick())
	servers := map[multicluster.ClusterName]map[string]apidiscoveryv2.DiscoveryFreshness{
		"a/same":  {"one.example.com": current, "two.example.com": current},
		"a/too":   {"one.example.com": current, "two.example.com": current},
		"a/other": {"one.example.com": current, "three.example.com": current},
		"a/stale": {"one.example.com": current, "two.example.com": stale},
	}
	got := map[multicluster.ClusterName]weak.Pointer[string]{}
	for name, groups := range servers {
		s := newServer(t)
		offers(s, groups)
		f.add(name, s.kubeconfig())
		facts, err := f.connected(t, name).Facts(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		got[name] = weak.Make(&facts.APIVersions[0])
	}
	if got["a/same"] != got["a/too"] {
		t.Error("clusters that offer the same share nothing")
	}
	if got["a/same"] == got["a/other"] || got["a/same"] == got["a/stale"] {
		t.Error("clusters share what they don't both offer")
	}
	for name := range servers {
		f.Remove(name)
	}
	f.mu.Lock()
	clear(f.engaged) // what the test itself holds on to
	f.mu.Unlock()
	eventually(t, func() string {
		runtime.GC()
		for name, versions := range got {
			if versions.Value() != nil {
				return "the APIs of " + name.String() + " are kept, which no connection has"
			}
		}
		return ""
	})
}

// A kind that comes later is found, and one whose API doesn't answer isn't taken for gone.
func TestKindsThatAreNotKnown(t *testing.T) {
	f, s := startFleet(t, quick()), newServer(t)
	var groups atomic.Pointer[map[string]apidiscoveryv2.DiscoveryFreshness]
	groups.Store(&map[string]apidiscoveryv2.DiscoveryFreshness{"one.example.com": current, "down.example.com": stale})
	s.instead = func(w http.ResponseWriter, r *http.Request) bool {
		if strings.HasPrefix(r.URL.Path, "/apis/down.example.com") {
			w.WriteHeader(http.StatusServiceUnavailable)
			return true
		}
		now := &server{}
		offers(now, *groups.Load())
		return now.instead(w, r)
	}
	conn := f.join(t, s)
	mapper := conn.GetRESTMapper()
	find := func(group string) error {
		mapping, err := mapper.RESTMapping(schema.GroupKind{Group: group, Kind: "Thing"}, "v1")
		if err == nil && mapping.Resource.Resource != "things" {
			err = fmt.Errorf("it is %s", mapping.Resource)
		}
		return err
	}
	if err := find("one.example.com"); err != nil {
		t.Error(err)
	}
	if err := find("two.example.com"); !meta.IsNoMatchError(err) {
		t.Errorf("a kind that isn't there: %v", err)
	}
	if err := find("down.example.com"); err == nil || meta.IsNoMatchError(err) {
		t.Errorf("a kind of an API that doesn't answer: %v", err)
	}
	groups.Store(&map[string]apidiscoveryv2.DiscoveryFreshness{"one.example.com": current, "two.example.com": current, "down.example.com": current})
	for _, group := range []string{"two.example.com", "down.example.com"} {
		eventually(t, func() string {
			if err := find(group); err != nil {
				conn.InvalidateFacts()
				_, asked := conn.Facts(t.Context())
				return errors.Join(err, asked).Error()
			}
			return ""
		})
	}
}

// offersTagged has a server offer groups with an ETag, and say that nothing has changed to who has
// that. First may answer in its place.
func offersTagged(s *server, groups *atomic.Pointer[map[string]apidiscoveryv2.DiscoveryFreshness], first func(http.ResponseWriter, *http.Request) bool) {
	s.instead = func(w http.ResponseWriter, r *http.Request) bool {
		now, offered := &server{}, *groups.Load()
		tag := fmt.Sprintf("%q", fmt.Sprint(offered))
		w = tagged{w, tag}
		if first(w, r) {
			return true
		}
		if r.URL.Path == "/apis" && r.Header.Get("If-None-Match") == tag {
			w.WriteHeader(http.StatusNotModified)
			return true
		}
		offers(now, offered)
		return now.instead(w, r)
	}
}

var (
	oneGroup  = map[string]apidiscoveryv2.DiscoveryFreshness{"one.example.com": current}
	twoGroups = map[string]apidiscoveryv2.DiscoveryFreshness{"one.example.com": current, "two.example.com": current}
)

// TestUnchangedAPIsCostOneRequest asks again what a cluster offers, which says that nothing has
// changed; then that something has, and then that it runs another version.
func TestUnchangedAPIsCostOneRequest(t *testing.T) {
	f, s := startFleet(t, quick()), newServer(t)
	var groups atomic.Pointer[map[string]apidiscoveryv2.DiscoveryFreshness]
	var requests atomic.Int32
	groups.Store(&oneGroup)
	offersTagged(s, &groups, func(_ http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == "/api" || r.URL.Path == "/apis" {
			requests.Add(1)
		}
		return false
	})
	conn := f.join(t, s)
	ask := func(has string, want int32) {
		t.Helper()
		conn.InvalidateFacts()
		requests.Store(0)
		facts, err := conn.Facts(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if n := requests.Load(); n != want || !slices.Contains(facts.APIVersions, has+".example.com/v1") {
			t.Errorf("%d requests, want %d; got %v", n, want, facts.APIVersions)
		}
	}
	if _, err := conn.Facts(t.Context()); err != nil {
		t.Fatal(err)
	}
	ask("one", 1)
	ask("one", 1)
	groups.Store(&twoGroups)
	ask("two", 3)
	ask("two", 1)
	newer := "v1.99.0"
	conn.version.Store(&newer)
	ask("two", 2)
}

// TestAPIsThatWereNotRead has a cluster offer more than before in an answer that can't be taken. What was
// known must not count as unchanged by that.
func TestAPIsThatWereNotRead(t *testing.T) {
	for name, answer := range map[string]string{
		"broken off": `{"kind"`,
		"too many":   `{"groups":[{"versions":[` + strings.Repeat("{},", 1000) + `{}]}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			f, s := startFleet(t, quick()), newServer(t)
			var groups atomic.Pointer[map[string]apidiscoveryv2.DiscoveryFreshness]
			var bad atomic.Bool
			groups.Store(&oneGroup)
			offersTagged(s, &groups, func(w http.ResponseWriter, r *http.Request) bool {
				if r.URL.Path != "/apis" || !bad.Load() {
					return false
				}
				w.Header().Set("Content-Type", "application/json")
				_, _ = w.Write([]byte(answer))
				return true
			})
			conn := f.join(t, s)
			if _, err := conn.Facts(t.Context()); err != nil {
				t.Fatal(err)
			}
			groups.Store(&twoGroups)
			bad.Store(true)
			conn.InvalidateFacts()
			if _, err := conn.Facts(t.Context()); err == nil {
				t.Error("the answer was taken")
			}
			bad.Store(false)
			facts, err := conn.Facts(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Contains(facts.APIVersions, "two.example.com/v1") {
				t.Errorf("older APIs are taken for the newest: %v", facts.APIVersions)
			}
		})
	}
}

// tagged sets an ETag of its own.
type tagged struct {
	http.ResponseWriter
	tag string
}

// Write implements http.ResponseWriter.
func (w tagged) Write(data []byte) (int, error) {
	w.Header().Set("ETag", w.tag)
	return w.ResponseWriter.Write(data)
}
