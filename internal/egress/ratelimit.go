// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	// secondaryLimit is how long GitHub wants to be left alone when it refuses requests
	// as coming too fast, and doesn't say until when.
	secondaryLimit = time.Minute
	// maxRefusal is how much of a refusal is read to see if it is such a one.
	maxRefusal = 4 << 10 // bytes
)

// rateLimit is how long a host refuses more requests that doesn't say so with
// Retry-After: GitHub, and those that do as it does, tell when the limit of these
// credentials is lifted, and answer 403 until then.
func (g *gate) rateLimit(response *http.Response) time.Duration {
	if response.StatusCode != http.StatusForbidden && response.StatusCode != http.StatusTooManyRequests {
		return 0
	}
	if response.Header.Get("X-RateLimit-Remaining") == "0" {
		reset, err := strconv.ParseInt(response.Header.Get("X-RateLimit-Reset"), 10, 64)
		if err == nil {
			// By the host's own clock, which may not be ours.
			now, err := http.ParseTime(response.Header.Get("Date"))
			if err != nil {
				now = g.clock.Now()
			}
			// A second more: both are cut off to seconds.
			return min(max(time.Unix(reset, 0).Sub(now), 0), maxRetryAfter-time.Second) + time.Second
		}
	}
	if !strings.HasPrefix(response.Header.Get("Content-Type"), "application/json") {
		return 0
	}
	var refusal struct {
		Documentation string `json:"documentation_url"`
	}
	if json.NewDecoder(io.LimitReader(response.Body, maxRefusal)).Decode(&refusal) != nil || !strings.HasSuffix(refusal.Documentation, "secondary-rate-limits") {
		return 0
	}
	return secondaryLimit
}
