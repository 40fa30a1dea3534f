// SPDX-License-Identifier: Apache-2.0

package answer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cluster-chandler/chandler/fleet/budget"
	"github.com/cluster-chandler/chandler/fleet/limits"
)

// errWaited ends a wait for memory.
var errWaited = errors.New("none came free in time")

// Hold has a claim hold so many bytes, and waits for a while until there is room for them. If there is none, the error says what
// needs it, and who has all of it.
func Hold(ctx context.Context, claim *budget.Claim, to int64, patience time.Duration, what string, discovery bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errWaited)
	defer cancel()
	err := claim.Grow(ctx, to)
	if errors.Is(err, budget.ErrTooLarge) || errors.Is(err, errWaited) || errors.Is(err, context.DeadlineExceeded) {
		return &limits.Error{Reason: limits.WaitingForMemory, Message: fmt.Sprintf("%s found no memory: %v", what, err), Discovery: discovery}
	}
	return err
}
