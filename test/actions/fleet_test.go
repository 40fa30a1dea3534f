// SPDX-License-Identifier: Apache-2.0

package actions

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiwait "k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-chandler/chandler/test/apiserver"
	"github.com/cluster-chandler/chandler/test/manager"
	"github.com/cluster-chandler/chandler/test/must"
)

// fleet is what one seed works on: a namespace of its own on each server.
type fleet struct {
	*servers
	*history
	t         *testing.T
	random    *rand.Rand
	id        string // of the seed
	namespace string
	charts    string // the artifact root
	active    int    // the hub that has the Clusters
	managers  [2]*manager.Process
	launches  int
	links     []link
	evaluates []*evaluate
	guard     guard
	backup    *hubBackup
	backups   map[int]*clusterBackup
	evens     [stacks][]time.Time // when all clusters had the newest of a stack
	late      map[int]time.Time   // when the second request of a component's move came too late
	isMissing bool                // the Secret with the text of component withSecret
	kubeconf  [][]byte
	planned   int // how many plans were made
}

// link says how Chandler reaches a workload cluster.
type link string

const (
	linked  link = ""
	paused  link = "paused"         // accepts connections and answers nothing
	stopped link = "stopped"        // refuses connections
	misled  link = "led elsewhere"  // the kubeconfig has a port at which nobody listens
	without link = "not introduced" // the kubeconfig is gone
)

func (f *fleet) hub() *apiserver.Server { return f.hubs[f.active] }

// newFleet makes namespaces, charts and Clusters, and starts a manager.
func newFleet(t *testing.T, s *servers, seed int) *fleet {
	t.Helper()
	id := fmt.Sprintf("s%d", seed)
	f := &fleet{
		servers: s, history: &history{}, t: t, random: rand.New(rand.NewPCG(uint64(seed), 27)), id: id, backups: map[int]*clusterBackup{}, late: map[int]time.Time{},
		namespace: "team-" + id, charts: filepath.Join(t.TempDir(), "charts"), links: make([]link, len(s.workloads)),
	}
	writeCharts(t, f.charts, id)
	for _, server := range append(s.workloads, s.hubs[:]...) {
		f.create(server, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.namespace}})
	}
	first := &model{clusters: make([]cluster, len(s.workloads)), shares: map[share]state{}}
	for c := range first.clusters {
		first.clusters[c].labels = map[string]string{}
	}
	f.moments = []moment{{begin: time.Now(), end: time.Now(), model: first}}
	for c, server := range s.workloads {
		u, err := server.AddUser(user, "system:masters")
		must.Succeed(t, err)
		f.kubeconf = append(f.kubeconf, u.Kubeconfig)
		f.evaluates = append(f.evaluates, &evaluate{fleet: f, cluster: c, next: server.Audit.Mark(t), passwords: map[int]*password{}, recordless: map[int]time.Time{}})
	}
	return f
}

// start starts the manager of a hub.
func (f *fleet) start(hub int) {
	f.t.Helper()
	u, err := f.hubs[hub].AddUser(user, "system:masters")
	must.Succeed(f.t, err)
	// This one would wait for the registration of a killed one.
	must.Succeed(f.t, f.hubs[hub].FreeScopes(f.t.Context(), f.namespace))
	if f.managers[0] == nil && f.managers[1] == nil {
		f.know()
	}
	f.launches++
	f.managers[hub] = manager.Start(f.t, manager.Options{
		Name: fmt.Sprintf("%s-manager-%d-%d", f.id, hub, f.launches), Binary: shared.binary, Kubeconfig: u.Kubeconfig, LogDir: os.Getenv("CHANDLER_E2E_LOGS"),
		Args: []string{"--namespace=" + f.namespace, "--instance-namespace=" + f.namespace, "--artifact-root=" + f.charts},
	})
}

// kill ends the manager of a hub as a power failure would.
func (f *fleet) kill(hub int) {
	if f.managers[hub] != nil {
		f.managers[hub].Kill()
		f.managers[hub] = nil
	}
}

// settle returns as soon as the managers have nothing to do, or the time is up, and whether they have nothing to do.
func (f *fleet) settle(timeout time.Duration) bool {
	f.t.Helper()
	if f.managers[f.active] == nil {
		return false
	}
	var last manager.Activity
	for since, begin := time.Now(), time.Now(); time.Since(begin) < timeout; time.Sleep(100 * time.Millisecond) {
		now := manager.Activity{Started: true}
		for _, m := range f.managers {
			if m == nil {
				continue
			}
			must.Succeed(f.t, m.Running())
			a, err := m.Activity()
			now.Started = now.Started && a.Started && err == nil
			now.Reconciles, now.Backlog = now.Reconciles+a.Reconciles, now.Backlog+a.Backlog
		}
		if now != last || now.Backlog != 0 || !now.Started {
			last, since = now, time.Now()
		}
		if time.Since(since) > calm {
			f.endGiving()
			f.know()
			f.rests = append(f.rests, time.Now())
			f.noteEven()
			return true
		}
	}
	return false
}

// calm is how long nothing may happen for managers to count as at rest.
const calm = 1200 * time.Millisecond

func (f *fleet) create(s *apiserver.Server, obj client.Object) {
	f.t.Helper()
	if err := s.Create(f.t.Context(), obj); err != nil {
		f.t.Fatalf("creating %T %s on %s: %v", obj, obj.GetName(), s.Name(), err)
	}
}

// remove deletes an object, if it is there.
func (f *fleet) remove(s *apiserver.Server, obj client.Object, options ...client.DeleteOption) {
	f.t.Helper()
	if err := s.Delete(f.t.Context(), obj, options...); client.IgnoreNotFound(err) != nil {
		f.t.Fatalf("deleting %T %s on %s: %v", obj, obj.GetName(), s.Name(), err)
	}
}

// busy is for objects that Chandler writes, too.
var busy = apiwait.Backoff{Duration: 10 * time.Millisecond, Factor: 1.5, Steps: 15}

// edit changes an object of the active hub, and reports whether it is there.
func edit[T client.Object](f *fleet, obj T, mutate func(T)) bool {
	f.t.Helper()
	err := retry.RetryOnConflict(busy, func() error {
		if err := f.hub().Get(f.t.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
			return err
		}
		mutate(obj)
		return f.hub().Update(f.t.Context(), obj)
	})
	if client.IgnoreNotFound(err) != nil {
		f.t.Fatalf("changing %T %s: %v", obj, obj.GetName(), err)
	}
	return err == nil
}

func (f *fleet) named(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: f.namespace, Name: name}
}

func (f *fleet) ctx() context.Context { return f.t.Context() }
