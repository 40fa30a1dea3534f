// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"
	"time"

	"github.com/cluster-chandler/chandler/fleet/internal/transport"
	"github.com/cluster-chandler/chandler/fleet/kubeversion"
)

// unauthorizedEvery is the least time between probes that a 401 brings forward:
// an API that always answers 401 must not make a link probe all the time.
const unauthorizedEvery = time.Second

// refreshGrace is how long a source may take to come up with a new kubeconfig
// after a 401, before the known one is tried again and the connection dropped.
const refreshGrace = 500 * time.Millisecond

// machine decides what happens with the connection to one cluster. It does no
// I/O and knows no clock: events tell what happened and when; plan tells what
// to start. Kubeconfigs are known to it by their digests.
type machine struct {
	options Options // intervals only
	orders  orders  // of events since the last plan

	origin  string
	missing bool   // there is no kubeconfig
	problem string // why it can't be read, if it is there
	refusal string // why the kubeconfig isn't acceptable, if it isn't

	wanted string           // digest of the kubeconfig to connect with; empty if there is none
	using  string           // digest of the one in use; empty while disconnected
	fault  *transport.Fault // of the last attempt with wanted, or of the connection lost

	failures int       // attempts with wanted that failed in a row
	dialling string    // digest of the attempt under way
	dialAt   time.Time // when the next attempt is due

	denied   bool // a probe of the connection in use was answered with 401
	missed   int  // probes that failed in a row
	breaks   int  // connections broken since the last good probe
	probing  bool
	probedAt time.Time // when the last probe started
	probeAt  time.Time // when the next probe is due

	expires   time.Time // when the credentials end
	refreshAt time.Time // when to ask for others

	version string
	lower   int // probes in a row that saw a lower version than that
}

// orders are what events ask the link to do at once.
type orders struct {
	cancelDial bool // end the attempt under way: its kubeconfig is out of date
	disconnect bool // close the connection in use
	redial     bool // let the next probe use new TCP connections
	refresh    bool // ask the source for the kubeconfig again
}

// kubeconfigReported: the source has one with a digest, or none; or why one isn't acceptable. It may be the one that is
// known, because of a problem with reading another. A connection made with an earlier one is kept as long as it
// works: a Secret may be deleted to have it made again.
func (m *machine) kubeconfigReported(now time.Time, origin, problem, refusal, digest string) {
	m.origin, m.problem, m.refusal = origin, problem, refusal
	m.missing = digest == "" && refusal == ""
	if digest != "" && digest == m.wanted {
		return
	}
	m.wanted, m.dialAt = digest, now
	m.failures, m.fault = 0, nil
	m.orders.cancelDial = m.dialling != "" && m.dialling != m.wanted
}

// dialled: an attempt has ended. It reports whether the connection or the credentials just tried are to be used.
func (m *machine) dialled(now time.Time, version string, fault *transport.Fault) (adopt bool) {
	digest := m.dialling
	m.dialling = ""
	switch {
	case digest != m.wanted: // out of date, however it ended
		return false
	case fault != nil:
		m.attemptFailed(now, fault)
		return false
	}
	if m.using == "" {
		m.replaced(version)
	} else {
		m.saw(version)
	}
	m.using = digest
	m.fault, m.failures, m.missed, m.denied = nil, 0, 0, false
	m.probeAt = now.Add(m.jittered(m.options.ProbeInterval))
	return true
}

func (m *machine) attemptFailed(now time.Time, fault *transport.Fault) {
	m.fault = fault
	m.failures++
	m.orders.refresh = fault.Reason == ReasonUnauthorized
	if m.denied {
		m.using, m.denied, m.missed = "", false, 0
		m.orders.disconnect = true
	}
	m.dialAt = now.Add(backoff(m.options, m.failures))
}

// probed: a probe of the connection in use has ended.
func (m *machine) probed(now time.Time, version string, fault *transport.Fault) {
	m.probing = false
	switch {
	case m.using == "":
	case fault == nil:
		m.missed, m.breaks, m.denied = 0, 0, false
		m.saw(version)
	case fault.Reason == ReasonUnauthorized && m.wanted != "":
		m.probeDenied(now)
	case fault.Reason == ReasonUnauthorized:
		m.lost(now, fault)
	default:
		m.probeFailed(now, fault)
	}
}

func (m *machine) probeFailed(now time.Time, fault *transport.Fault) {
	m.missed++
	if m.missed < m.options.ProbeFailures {
		m.probeAt = m.probedAt.Add(m.options.ProbeRetry)
		m.orders.redial = m.missed > 1
		return
	}
	m.lost(now, &transport.Fault{
		Reason:  ReasonProbeFailed,
		Message: fmt.Sprintf("%d probes in a row failed: %s", m.missed, fault.Message),
	})
}

// probeDenied lets an attempt decide: if a newer kubeconfig works, its
// credentials can be swapped in below the watches; if not, the connection ends.
func (m *machine) probeDenied(now time.Time) {
	if m.denied {
		return
	}
	m.denied, m.dialAt, m.orders.refresh = true, now, true
	if m.wanted == m.using {
		m.dialAt = now.Add(refreshGrace)
	}
}

// unauthorized: a request was answered with 401. The answer may be about the request only, so a
// probe decides.
func (m *machine) unauthorized() {
	m.probeAt = earlier(m.probeAt, m.probedAt.Add(unauthorizedEvery))
}

// unanswered: a request got no answer. The cause may be the request only, so a probe decides.
func (m *machine) unanswered() {
	m.probeAt = earlier(m.probeAt, m.probedAt.Add(m.options.ProbeRetry))
}

// downgradeAfter is how many probes in a row have to see a lower version before it counts. While
// a control plane with several API servers is upgraded, each probe may see either version.
const downgradeAfter = 3

// saw takes in the version that a probe saw. A version that can't be compared counts at once.
func (m *machine) saw(version string) {
	known, err := kubeversion.Parse(m.version)
	if err == nil && m.lower < downgradeAfter-1 {
		if seen, err := kubeversion.Parse(version); err == nil && seen.LessThan(known) {
			m.lower++
			return
		}
	}
	m.version, m.lower = version, 0
}

// replaced: a new connection is in use, maybe to another server.
func (m *machine) replaced(version string) { m.version, m.lower = version, 0 }

// broken: a component could not start on the connection in use.
func (m *machine) broken(now time.Time, fault *transport.Fault) {
	if m.using == "" {
		return
	}
	m.lost(now, fault)
	m.breaks++
	m.dialAt = now.Add(backoff(m.options, m.breaks))
}

// freed: the source that had the same cluster may have it no more.
func (m *machine) freed(now time.Time) {
	if m.fault != nil && m.fault.Reason == ReasonDuplicateCluster {
		m.dialAt = now
	}
}

// lost gives the connection up and lets a new attempt start at once.
func (m *machine) lost(now time.Time, fault *transport.Fault) {
	m.using, m.missed, m.denied = "", 0, false
	m.dialAt = now
	if m.fault == nil { // else the newer kubeconfig has its own fault already
		m.fault = fault
	}
	m.orders.disconnect, m.orders.refresh = true, fault.Reason == ReasonUnauthorized
}
