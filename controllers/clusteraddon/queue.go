// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"github.com/cluster-chandler/chandler/controllers/management"
	"github.com/cluster-chandler/chandler/internal/member"
)

// Queue lets others start a reconcile of a ClusterAddon.
type Queue struct {
	management.Queue
	Names member.Names
}
