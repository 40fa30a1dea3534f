// SPDX-License-Identifier: Apache-2.0

package failure

import (
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/cluster-chandler/chandler/internal/retry"
)

// jitter is added to a pause at random, as part of it, so that sources aren't asked in step.
const jitter = 0.25

// Backoff returns the time until the next try, after so many failures before this one.
func Backoff(reason string, failures int) time.Duration {
	times := retry.Refused
	switch reason {
	case SourceUnavailable, SourceUntrusted:
		times = retry.Unavailable
	case ArtifactNotFound, SignatureMissing:
		times = retry.NotFound
	}
	return wait.Jitter(times.After(failures), jitter)
}
