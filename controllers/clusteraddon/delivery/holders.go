// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"slices"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/gather"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/wanted"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// Holders decides which stack has each release: the one that installed it, or else the first in the
// list. An unresolved stack that keeps its releases may still want what it installed.
func Holders(wanted []wanted.Addon, installed map[deliver.Release]deliver.Summary, stacks map[string]gather.Unresolved, assigned []addonsv1.StackRevision) map[deliver.Release]string {
	holder := map[deliver.Release]string{}
	for i := range wanted {
		release := wanted[i].Release()
		_, taken := holder[release]
		record, ok := installed[release]
		switch {
		case ok && stacks[record.Stack].State.KeepsReleases() && !slices.Contains(stack.Assigned(assigned, record.Stack).MovedAddons, record.String()):
			holder[release] = record.Stack
		case !taken || ok && record.Stack == wanted[i].Stack:
			holder[release] = wanted[i].Stack
		}
	}
	return holder
}
