// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"errors"
	"strings"

	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/message"
	"github.com/cluster-chandler/chandler/internal/render/protocol"
)

// failure returns the failure for a user. An error without a reason gets the reason of its stage.
func (w *worker) failure(err error, sensitive []string) *protocol.Failure {
	known := &failure.Error{Reason: w.stage.Reason(), Err: err}
	errors.As(err, &known)
	return &protocol.Failure{Reason: known.Reason, Message: safeText(known.Err.Error(), sensitive)}
}

// maxErrorBytes keeps messages fit for a condition.
const maxErrorBytes = 2048

// safeText is an error's text without sensitive strings, and short enough for a condition.
func safeText(text string, sensitive []string) string {
	return message.Shorten(strings.ToValidUTF8(message.Redact(text, sensitive), "\uFFFD"), maxErrorBytes)
}
