// SPDX-License-Identifier: Apache-2.0

package instances

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// patience is how long what takes seconds may take on a busy machine.
const patience = 90 * time.Second

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// lines are texts on lines of their own.
func lines(texts []string) string { return "\t" + strings.Join(texts, "\n\t") }
