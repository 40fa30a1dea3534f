// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/cluster-chandler/chandler/internal/failure"
)

func TestRateLimits(t *testing.T) {
	now := time.Date(2026, time.March, 2, 10, 0, 0, 0, time.UTC)
	reset := fmt.Sprint(now.Add(10 * time.Minute).Unix())
	for name, tc := range map[string]struct {
		code   int
		header map[string]string
		reason string
		after  time.Duration
	}{
		"used up":                {403, map[string]string{"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": reset}, failure.SourceUnavailable, 10*time.Minute + time.Second},
		"used up, 429":           {429, map[string]string{"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": reset}, failure.SourceUnavailable, 10*time.Minute + time.Second},
		"just over":              {403, map[string]string{"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1"}, failure.SourceUnavailable, time.Second},
		"for ever":               {403, map[string]string{"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "9999999999999"}, failure.SourceUnavailable, maxRetryAfter},
		"no number":              {403, map[string]string{"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "soon"}, failure.SourceUnauthorized, 0},
		"some left":              {403, map[string]string{"X-RateLimit-Remaining": "7", "X-RateLimit-Reset": reset}, failure.SourceUnauthorized, 0},
		"an answer with a limit": {200, map[string]string{"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": reset}, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			g := &guardedTransport{Options: Options{Clock: clocktesting.NewFakePassiveClock(now)}}
			response := &http.Response{StatusCode: tc.code, Header: http.Header{}, Body: http.NoBody}
			for name, value := range tc.header {
				response.Header.Set(name, value)
			}
			err := g.judge("api.example.org", response)
			if tc.reason == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			fault := Explain(t.Context(), "", err)
			if fault == nil || fault.Reason != tc.reason || fault.RetryAfter != tc.after {
				t.Fatalf("%+v after %s", fault, fault.RetryAfter)
			}
		})
	}
}
