// SPDX-License-Identifier: Apache-2.0

package fleetwatch

import (
	"net/http"
	"net/url"
	"runtime"
	"strconv"
	"testing"

	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/test/connection"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/must"
)

// awaitWatches waits until there are so many watches of ConfigMaps and of Deployments.
func (w *watched) awaitWatches(configMaps, deployments int, why string) {
	w.t.Helper()
	eventually(w.t, why, func() bool {
		return w.server.count(w.server.watching, "ConfigMap") == configMaps && w.server.count(w.server.watching, "Deployment") == deployments
	})
}

// TestWatchesEnd when nobody needs them.
func TestWatchesEnd(t *testing.T) {
	t.Parallel()
	var w *watched
	t.Run("of a connection", func(t *testing.T) {
		w = watchObjects(t)
		w.server.put(settings("a"))
		of := func(releases map[deliver.Release]Expected) { t.Helper(); w.follow(releases) }
		both := map[deliver.Release]Expected{
			web: {Objects: 9, Applied: sumsOf(settings("a"))},
			api: {Objects: 9, Applied: sumsOf(shown("ConfigMap", api, "x", "a"), shown("Deployment", api, "x", "a"))},
		}
		of(nil)
		if len(w.clusters) != 0 {
			t.Error("something is kept of a cluster where nothing is watched")
		}
		of(both)
		w.awaitWatches(1, 1, "each kind is watched once")
		of(map[deliver.Release]Expected{web: both[web]})
		w.awaitWatches(1, 0, "one add-on has no Deployment")
		w.server.put(settings("b"))
		w.sync("ConfigMap")
		w.expectDiffers(true, "the other kind is watched still")
		of(nil)
		w.awaitWatches(0, 0, "nothing is to be watched")
		w.expectDiffers(false, "nobody wants to know")
		if _, known := w.seen(settings()); known {
			t.Error("something is known of what isn't watched")
		}
		lists := w.server.count(w.server.lists, "ConfigMap")
		of(both)
		w.awaitWatches(1, 1, "all is watched again")
		if again := w.server.count(w.server.lists, "ConfigMap"); again != lists+1 {
			t.Errorf("ConfigMaps were listed %d times", again-lists)
		}
		w.awaitListed(settings())
		w.expectDiffers(true, "it was changed")
	})
	w.t = t
	w.awaitWatches(0, 0, "the connection has ended")
	eventually(t, "it is forgotten", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return len(w.clusters) == 0
	})
	w.follow(map[deliver.Release]Expected{web: {Objects: 9, Applied: sumsOf(settings("a"))}})
	w.expectDiffers(false, "nothing is known of a connection that is over")
	w.Repairing(w.conn, web)()
	w.Accept(w.conn, web, nil)
	if _, known := w.seen(settings()); known || len(w.clusters) != 0 {
		t.Error("something is kept of a connection that is over")
	}
}

// TestWatchesAtRest last long and have no bookmarks: a fleet has tens of thousands of them.
func TestWatchesAtRest(t *testing.T) {
	w := watchObjects(t)
	asked := make(chan url.Values, 1)
	w.server.set(func(s *objectServer) {
		s.strange = func(_ string, _ http.ResponseWriter, r *http.Request) bool {
			if watches(r) {
				asked <- r.URL.Query()
			}
			return false
		}
	})
	w.follow(map[deliver.Release]Expected{web: {Objects: 9, Applied: sumsOf(settings("a"))}})
	query := <-asked
	if seconds, err := strconv.Atoi(query.Get("timeoutSeconds")); err != nil || seconds < 1800 {
		t.Errorf("a watch lasts %q seconds", query.Get("timeoutSeconds"))
	}
	if query.Has("allowWatchBookmarks") {
		t.Error("a watch has bookmarks")
	}
}

// TestNothingIsLeftOfWatchesThatEnd, also of those that end at once.
func TestNothingIsLeftOfWatchesThatEnd(t *testing.T) {
	w := watchObjects(t)
	w.server.put(settings("a"))
	releases := map[deliver.Release]Expected{web: {Objects: 9, Applied: sumsOf(settings("a"), deployment())}}
	round := func(awaits bool) {
		w.follow(releases)
		if awaits {
			w.awaitWatches(1, 1, "all is watched")
		}
		w.follow(nil)
		w.awaitWatches(0, 0, "nothing is watched")
	}
	for range 3 {
		round(true)
	}
	before := runtime.NumGoroutine()
	for i := range 200 {
		round(i%10 == 0)
	}
	eventually(t, "as many goroutines as before", func() bool { return runtime.NumGoroutine() <= before })
	c := w.of("ns/prod", w.conn, false)
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.kinds)+len(c.releases)+c.objects != 0 {
		t.Errorf("%d kinds, %d add-ons and %d objects are kept", len(c.kinds), len(c.releases), c.objects)
	}
}

// TestNothingIsLeftOfClustersThatLeave connects to clusters, watches their records and objects,
// and lets them go.
func TestNothingIsLeftOfClustersThatLeave(t *testing.T) {
	long.InCI(t)
	server := newObjectServer()
	server.put(settings("a"))
	objects := NewObjects(func(multicluster.ClusterName) {})
	records := NewRecords(multicluster.ClusterName.String, noProofs, func(multicluster.ClusterName) {}, func(multicluster.ClusterName) {})
	connect, end := connection.Again(t, server.ServeHTTP)
	cycle := func(i int) {
		w := &watched{t: t, server: server, Objects: objects, conn: connect()}
		must.Succeed(t, records.Engage(w.conn.Context(), "ns/prod", w.conn))
		w.follow(map[deliver.Release]Expected{web: {Objects: 9, Applied: sumsOf(settings("a"))}})
		if i%4 > 0 { // others leave before anything is known
			w.awaitListed(settings())
			eventually(t, "its records are known", func() bool { _, known := records.Of("ns/prod"); return known })
		}
		end()
		eventually(t, "the connection ends", func() bool { return w.conn.Context().Err() != nil })
	}
	for i := range 20 {
		cycle(i)
	}
	before := runtime.NumGoroutine()
	for i := range 200 {
		cycle(i)
	}
	eventually(t, "as many goroutines as before", func() bool { return runtime.NumGoroutine() <= before })
	eventually(t, "nothing is known of any", func() bool {
		objects.mu.Lock()
		defer objects.mu.Unlock()
		_, known := records.Of("ns/prod")
		return !known && len(objects.clusters) == 0
	})
}
