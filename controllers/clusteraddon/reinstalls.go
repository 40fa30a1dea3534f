// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-chandler/chandler/internal/deliver"
)

// Pauses before an add-on is installed once more whose record doesn't stay. The watch of
// records may be behind, so the first few installations are free.
const (
	freeInstalls      = 3
	firstInstallPause = 10 * time.Second
	lastInstallPause  = 5 * time.Minute
	installsForgotten = 2 * lastInstallPause
)

// reinstalls count how often add-ons were installed that had no record.
type reinstalls struct {
	mu    sync.Mutex
	count map[installKey]installs
}

type installKey struct {
	cluster client.ObjectKey
	release deliver.Release
}

type installs struct {
	number int
	last   time.Time
}

func newReinstalls() *reinstalls { return &reinstalls{count: map[installKey]installs{}} }

// pause returns how long to wait before the add-on is installed again; 0 if it may be now.
func (r *reinstalls) pause(key installKey, now time.Time) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	done := r.count[key]
	if done.number < freeInstalls {
		return 0
	}
	pause := firstInstallPause
	for range min(done.number-freeInstalls, 10) {
		pause = min(2*pause, lastInstallPause)
	}
	return max(0, done.last.Add(pause).Sub(now))
}

// installed notes that an add-on without a record was written.
func (r *reinstalls) installed(key installKey, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	done := r.count[key]
	if now.Sub(done.last) > installsForgotten {
		done.number = 0
	}
	r.count[key] = installs{number: done.number + 1, last: now}
}

// removed notes that the record went with its add-on, as was wanted.
func (r *reinstalls) removed(key installKey) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.count, key)
}

// forget drops what is known of a cluster.
func (r *reinstalls) forget(cluster client.ObjectKey) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key := range r.count {
		if key.cluster == cluster {
			delete(r.count, key)
		}
	}
}
