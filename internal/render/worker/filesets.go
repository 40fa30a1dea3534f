// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/lru"
	"github.com/cluster-chandler/chandler/internal/render/protocol"
)

// keptFiles is how much of a worker's memory files may take between requests: a sixteenth.
const keptFiles = 16

func newFileSets(memoryBytes int64) *lru.Cache[protocol.FileSet, []artifact.File] {
	return lru.New[protocol.FileSet](memoryBytes/keptFiles, protocol.SizeOf)
}
