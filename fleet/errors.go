// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"github.com/cluster-chandler/chandler/fleet/internal/lazycache"
	"github.com/cluster-chandler/chandler/fleet/limits"
)

// ErrCacheNotSynced is returned by reads from the cache of a cluster that hasn't listed the
// kind within two seconds. Return it from a reconcile, and the request is tried again. The error that wraps it names
// the kind, and why it isn't listed if that is known: [apierrors.IsForbidden] and [errors.AsType] of a [LimitError] find
// the cause.
var ErrCacheNotSynced = lazycache.ErrNotSynced

// LimitError says that an API server answered with more than Options.Limits allow, or that Options.Memory had no room for an
// answer.
type LimitError = limits.Error

// Reasons of a LimitError that no State has: the cluster is connected.
const (
	// TooManyKinds: a server says that it has more kinds, or API versions, than are read.
	TooManyKinds = limits.TooManyKinds
	// WaitingForMemory: the error passes by itself.
	WaitingForMemory = limits.WaitingForMemory
)
