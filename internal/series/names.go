// SPDX-License-Identifier: Apache-2.0

// Package series bounds the series of a metric whose label users make up.
package series

import (
	"sync"

	"k8s.io/apimachinery/pkg/util/sets"
)

// Other is the label of all names that have no series of their own.
const Other = "other"

// Names are those that have series of their own: the first ones.
//
// Key: the name.
// Bound: the number that Bounded is given.
// Lost with it: other names have series of their own.
type Names struct {
	most  int
	mu    sync.Mutex
	known sets.Set[string]
}

// Bounded returns names of which so many have series of their own.
func Bounded(most int) *Names { return &Names{most: most, known: sets.New[string]()} }

// Label returns the name as a label, or [Other].
func (n *Names) Label(name string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.known.Has(name) && len(n.known) == n.most {
		return Other
	}
	n.known.Insert(name)
	return name
}
