// SPDX-License-Identifier: Apache-2.0

package failure

import (
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// FirstRetry is the time until the second try; each later one takes twice as long.
	FirstRetry = time.Second
	// jitter is added at random, as part of the time, so that sources aren't asked in step.
	jitter = 0.25

	// The longest times between two tries.

	// MaxUnavailable is for a source that may be back at any time.
	MaxUnavailable = 15 * time.Second
	// MaxNotFound is for content that may be published at any time.
	MaxNotFound = time.Minute
	// MaxRetry is for all that somebody has to fix.
	MaxRetry = 5 * time.Minute
)

// Backoff returns the time until the next try, after so many failures before this one.
func Backoff(reason string, failures int) time.Duration {
	most := MaxRetry
	switch reason {
	case SourceUnavailable:
		most = MaxUnavailable
	case ArtifactNotFound, SignatureMissing:
		most = MaxNotFound
	}
	delay := FirstRetry << min(failures, 16)
	return wait.Jitter(min(delay, most), jitter)
}
