// SPDX-License-Identifier: Apache-2.0

package fleet

import "time"

// plan is what to do and to start now, and when to ask again (zero: on the next event).
type plan struct {
	orders
	dial, probe bool
	retry       bool // the attempt is not the first with this kubeconfig
	again       time.Time
}

// plan decides what to start and takes it as started.
func (m *machine) plan(now time.Time) plan {
	p := plan{orders: m.orders}
	m.orders = orders{}
	if m.wanted != "" && (m.wanted != m.using || m.denied) && m.dialling == "" {
		if p.dial = !now.Before(m.dialAt); p.dial {
			p.retry = m.failures > 0
			m.dialling = m.wanted
		} else {
			p.again = m.dialAt
		}
	}
	if m.using != "" && !m.probing {
		if p.probe = !now.Before(m.probeAt); p.probe {
			m.probing, m.probedAt = true, now
			m.probeAt = now.Add(m.jittered(m.options.ProbeInterval))
		} else {
			p.again = earlier(p.again, m.probeAt)
		}
	}
	if !m.refreshAt.IsZero() {
		if !now.Before(m.refreshAt) {
			p.refresh = true
			m.refreshAt = now.Add(max(refreshRetry, m.expires.Sub(now)*2/3))
		}
		p.again = earlier(p.again, m.refreshAt)
	}
	return p
}

// refreshRetry is the least time between two requests for credentials that expire.
const refreshRetry = 10 * time.Second

// expire notes when the credentials end. They are asked for again when two thirds of the time until
// then have passed: the rest is for retries.
func (m *machine) expire(now, at time.Time) {
	if m.expires.Equal(at) {
		return
	}
	m.expires, m.refreshAt = at, time.Time{}
	if !at.IsZero() {
		m.refreshAt = now.Add(max(0, at.Sub(now)*2/3))
	}
}

// backoff returns how long a cluster is parked that doesn't answer, by its number of failed attempts.
// The time doubles from RetryMin to RetryMax, less up to a half at random. So a fleet which went dark
// together doesn't come back in step.
func backoff(o Options, failures int) time.Duration {
	d := o.RetryMin
	for i := 1; i < failures && d < o.RetryMax; i++ {
		d *= 2
	}
	d = min(d, o.RetryMax)
	return d - time.Duration(o.Random()*float64(d)/2)
}

// jittered takes up to a tenth off.
func (m *machine) jittered(d time.Duration) time.Duration {
	return d - time.Duration(m.options.Random()*float64(d)/10)
}

// earlier returns the earlier of two times; zero means never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}
