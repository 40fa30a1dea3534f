// SPDX-License-Identifier: Apache-2.0

package github

import (
	"net/http"
	"strconv"
	"time"
)

// hourly is how many requests GitHub answers in an hour, to who has a token.
const hourly = 5000

// limits are the rate limits, which are the same for all who ask.
type limits struct {
	remaining int
	reset     time.Time // when remaining is full again

	secondary      time.Time // until when the secondary limit holds
	withRetryAfter bool
}

// LimitRate lets the server answer that many requests until the reset.
func (s *Server) LimitRate(remaining int, reset time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limits.remaining, s.limits.reset = remaining, reset
}

// LimitSecondary lets the server refuse requests until then, as coming too fast. Some
// of GitHub's refusals say when that is, and some don't.
func (s *Server) LimitSecondary(until time.Time, withRetryAfter bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limits.secondary, s.limits.withRetryAfter = until, withRetryAfter
}

// refuse answers in the place of the server while a limit holds.
func (s *Server) refuse(w http.ResponseWriter) bool {
	message, documentation := s.refusal(w.Header())
	if message == "" {
		return false
	}
	say(w, http.StatusForbidden, message, "https://docs.github.com/rest/overview/resources-in-the-rest-api#"+documentation)
	return true
}

// refusal is what a request is refused with now, "" if it isn't.
func (s *Server) refusal(header http.Header) (message, documentation string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.options.Now()
	if s.limits.secondary.After(now) {
		if s.limits.withRetryAfter {
			header.Set("Retry-After", strconv.Itoa(int(s.limits.secondary.Sub(now).Seconds())))
		}
		return "You have exceeded a secondary rate limit. Please wait a few minutes before you try again.", "secondary-rate-limits"
	}
	if !s.limits.reset.After(now) {
		s.limits.remaining, s.limits.reset = hourly, now.Add(time.Hour)
	}
	if s.limits.remaining > 0 {
		return "", ""
	}
	s.tellRate(header)
	return "API rate limit exceeded for user ID 1.", "rate-limiting"
}

// spend counts an answer that isn't 304.
func (s *Server) spend(w http.ResponseWriter, cost int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limits.remaining -= cost
	s.tellRate(w.Header())
}

func (s *Server) tellRate(header http.Header) {
	header.Set("X-RateLimit-Limit", strconv.Itoa(hourly))
	header.Set("X-RateLimit-Remaining", strconv.Itoa(s.limits.remaining))
	header.Set("X-RateLimit-Reset", strconv.FormatInt(s.limits.reset.Unix(), 10))
	header.Set("X-RateLimit-Resource", "core")
}
