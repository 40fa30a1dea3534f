// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cluster-chandler/chandler/fleet/internal/transport"
)

var (
	refusedFault = &transport.Fault{Reason: ReasonConnectionRefused, Message: "api:6443 refuses connections"}
	timeoutFault = &transport.Fault{Reason: ReasonConnectionTimedOut, Message: "api:6443 does not answer"}
	deniedFault  = &transport.Fault{Reason: ReasonUnauthorized, Message: "api:6443 does not accept the credentials"}
)

// world drives a machine over a fake time line.
type world struct {
	machine
	now     time.Time
	adopted bool
}

func newWorld() *world {
	return &world{
		machine: machine{
			origin: "Secret a/b-kubeconfig", missing: true,
			options: Options{Random: func() float64 { return 0 }}.defaulted(),
		},
		now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
	}
}

// A step is one event; what it does reads as a word or two.
type step func(*world)

func accepted(digest string) step {
	return func(w *world) { w.kubeconfigReported(w.now, w.origin, "", "", digest) }
}

func dialled(f *transport.Fault) step {
	return func(w *world) { w.adopted = w.dialled(w.now, "v1.36.3", f) }
}

func probed(version string, f *transport.Fault) step {
	return func(w *world) { w.probed(w.now, version, f) }
}

func after(d time.Duration) step { return func(w *world) { w.now = w.now.Add(d) } }

var (
	missing    step = func(w *world) { w.kubeconfigReported(w.now, w.origin, "", "", "") }
	unreadable step = func(w *world) { w.kubeconfigReported(w.now, w.origin, "can't be read (Forbidden)", "", "") }
	refused    step = func(w *world) {
		w.kubeconfigReported(w.now, w.origin, "", "tokenFile names a file; use token", "")
	}
	denied       step = func(w *world) { w.unauthorized() }
	unanswered   step = func(w *world) { w.unanswered() }
	planned      step = func(w *world) { w.plan(w.now) }
	engageFailed step = func(w *world) {
		w.broken(w.now, &transport.Fault{Reason: ReasonEngageFailed, Message: "see the log"})
	}
)

func TestMachine(t *testing.T) {
	connected := []step{accepted("1"), planned, dialled(nil)}
	probe := func(f *transport.Fault) []step { return []step{after(time.Minute), planned, probed("v1.36.3", f)} }
	steps := func(parts ...any) (all []step) {
		for _, p := range parts {
			switch p := p.(type) {
			case step:
				all = append(all, p)
			case []step:
				all = append(all, p...)
			}
		}
		return all
	}
	for name, tc := range map[string]struct {
		steps  []step
		phase  Phase
		reason string
		says   string // part of the message
		orders orders // of the last event
		adopt  bool
		plan   string // what is due now: dial, retry, probe; or the time to wait
	}{
		"no kubeconfig": {
			phase: PhaseWaiting, reason: ReasonKubeconfigMissing, says: "Secret a/b-kubeconfig is missing", plan: "wait for an event",
		},
		"a kubeconfig that can't be read": {
			steps: steps(unreadable), phase: PhaseWaiting, reason: ReasonKubeconfigUnreadable, says: "can't be read (Forbidden)", plan: "wait for an event",
		},
		"a refused kubeconfig is not tried": {
			steps: steps(refused), phase: PhaseRefused, reason: ReasonKubeconfigRefused, says: "tokenFile", plan: "wait for an event",
		},
		"a refused kubeconfig replaced": {
			steps: steps(refused, accepted("1")), phase: PhaseConnecting, reason: ReasonConnecting, plan: "dial",
		},
		"a first kubeconfig is dialled at once": {
			steps: steps(accepted("1")), phase: PhaseConnecting, reason: ReasonConnecting, plan: "dial",
		},
		"one attempt at a time": {
			steps: steps(accepted("1"), planned), phase: PhaseConnecting, reason: ReasonConnecting, plan: "wait for an event",
		},
		"a kubeconfig that changes during an attempt cancels it": {
			steps: steps(accepted("1"), planned, accepted("2")), phase: PhaseConnecting, reason: ReasonConnecting,
			orders: orders{cancelDial: true}, plan: "wait for an event",
		},
		"the outcome of an outdated attempt is dropped": {
			steps: steps(accepted("1"), planned, accepted("2"), dialled(nil)), phase: PhaseConnecting, reason: ReasonConnecting, plan: "dial",
		},
		"connected": {
			steps: connected, phase: PhaseConnected, reason: ReasonConnected, adopt: true, plan: "1m0s",
		},
		"the same kubeconfig again": {
			steps: steps(connected, accepted("1")), phase: PhaseConnected, reason: ReasonConnected, plan: "1m0s",
		},
		"a failed attempt backs off": {
			steps: steps(accepted("1"), planned, dialled(refusedFault)), phase: PhaseUnreachable, reason: ReasonConnectionRefused, plan: "1s",
		},
		"a second failed attempt backs off further": {
			steps: steps(accepted("1"), planned, dialled(refusedFault), after(time.Second), planned, dialled(timeoutFault)),
			phase: PhaseUnreachable, reason: ReasonConnectionTimedOut, plan: "2s",
		},
		"a due retry": {
			steps: steps(accepted("1"), planned, dialled(refusedFault), after(time.Second)), phase: PhaseUnreachable, reason: ReasonConnectionRefused, plan: "retry",
		},
		"the state keeps still during a retry": {
			steps: steps(accepted("1"), planned, dialled(refusedFault), after(time.Second), planned), phase: PhaseUnreachable, reason: ReasonConnectionRefused, plan: "wait for an event",
		},
		"a changed kubeconfig is tried at once, as a first attempt": {
			steps: steps(accepted("1"), planned, dialled(refusedFault), accepted("2")), phase: PhaseConnecting, reason: ReasonConnecting, plan: "dial",
		},
		"401 asks for the kubeconfig again": {
			steps: steps(accepted("1"), planned, dialled(deniedFault)), phase: PhaseUnreachable, reason: ReasonUnauthorized,
			orders: orders{refresh: true}, plan: "1s",
		},
		"a due probe": {
			steps: steps(connected, after(time.Minute)), phase: PhaseConnected, reason: ReasonConnected, plan: "probe",
		},
		"one failed probe is nothing": {
			steps: steps(connected, probe(timeoutFault)), phase: PhaseConnected, reason: ReasonConnected, plan: "5s",
		},
		"two failed probes: the next on a new TCP connection": {
			steps: steps(connected, probe(timeoutFault), probe(timeoutFault)), phase: PhaseConnected, reason: ReasonConnected,
			orders: orders{redial: true}, plan: "5s",
		},
		"five failed probes disconnect": {
			steps: steps(connected, probe(timeoutFault), probe(timeoutFault), probe(timeoutFault), probe(timeoutFault), probe(timeoutFault)),
			phase: PhaseUnreachable, reason: ReasonProbeFailed, says: "5 probes in a row failed: api:6443 does not answer",
			orders: orders{disconnect: true}, plan: "dial",
		},
		"a good probe between forgives": {
			steps: steps(connected, probe(timeoutFault), probe(timeoutFault), probe(timeoutFault), probe(timeoutFault), probe(nil), probe(timeoutFault)),
			phase: PhaseConnected, reason: ReasonConnected, plan: "5s",
		},
		"401 from a probe gives the source a moment to bring a new kubeconfig": {
			steps: steps(connected, probe(deniedFault)), phase: PhaseConnected, reason: ReasonConnected,
			orders: orders{refresh: true}, plan: "500ms",
		},
		"then tries the known one again": {
			steps: steps(connected, probe(deniedFault), after(refreshGrace)), phase: PhaseConnected, reason: ReasonConnected, plan: "dial",
		},
		"and disconnects if that fails": {
			steps: steps(connected, probe(deniedFault), after(refreshGrace), planned, dialled(deniedFault)), phase: PhaseUnreachable, reason: ReasonUnauthorized,
			orders: orders{disconnect: true, refresh: true}, plan: "1s",
		},
		"a new kubeconfig after a 401 is tried at once": {
			steps: steps(connected, probe(deniedFault), accepted("2")), phase: PhaseConnected, reason: ReasonConnected, plan: "dial",
		},
		"and is adopted": {
			steps: steps(connected, probe(deniedFault), accepted("2"), planned, dialled(nil)), phase: PhaseConnected, reason: ReasonConnected,
			adopt: true, plan: "1m0s",
		},
		"401 while a newer kubeconfig waits tries that at once": {
			steps: steps(connected, accepted("2"), planned, dialled(refusedFault), planned, probed("", deniedFault)),
			phase: PhaseConnected, reason: ReasonConnectionRefused, orders: orders{refresh: true}, plan: "retry",
		},
		"a good probe after a 401 forgives": {
			steps: steps(connected, probe(deniedFault), probe(nil)), phase: PhaseConnected, reason: ReasonConnected, plan: "1m0s",
		},
		"401 from a request brings the probe forward": {
			steps: steps(connected, denied), phase: PhaseConnected, reason: ReasonConnected, plan: "probe",
		},
		"many 401 from requests bring it forward once a second": {
			steps: steps(connected, denied, planned, probed("v1.36.3", nil), after(400*time.Millisecond), denied),
			phase: PhaseConnected, reason: ReasonConnected, plan: "600ms",
		},
		"a request without an answer brings the probe forward": {
			steps: steps(connected, unanswered), phase: PhaseConnected, reason: ReasonConnected, plan: "probe",
		},
		"many of them bring it forward once in five seconds": {
			steps: steps(connected, unanswered, planned, probed("v1.36.3", nil), after(time.Second), unanswered),
			phase: PhaseConnected, reason: ReasonConnected, plan: "4s",
		},
		"a new kubeconfig is tried beside the connection": {
			steps: steps(connected, accepted("2")), phase: PhaseConnected, reason: ReasonConnected, plan: "dial",
		},
		"a new kubeconfig that fails leaves the connection": {
			steps: steps(connected, accepted("2"), planned, dialled(refusedFault)), phase: PhaseConnected, reason: ReasonConnectionRefused,
			says: "api:6443 refuses connections. The cluster is connected with an earlier kubeconfig, until that is refused or the manager restarts", plan: "1s",
		},
		"a new kubeconfig that works is adopted": {
			steps: steps(connected, accepted("2"), planned, dialled(nil)), phase: PhaseConnected, reason: ReasonConnected,
			adopt: true, plan: "1m0s",
		},
		"back to the kubeconfig in use": {
			steps: steps(connected, accepted("2"), planned, dialled(refusedFault), accepted("1")), phase: PhaseConnected, reason: ReasonConnected, plan: "1m0s",
		},
		"a new kubeconfig that is refused leaves the connection": {
			steps: steps(connected, refused), phase: PhaseConnected, reason: ReasonKubeconfigRefused, says: "earlier kubeconfig", plan: "1m0s",
		},
		"a missing kubeconfig leaves the connection": {
			steps: steps(connected, missing), phase: PhaseConnected, reason: ReasonKubeconfigMissing, plan: "1m0s",
		},
		"a missing kubeconfig shows once the connection is lost": {
			steps: steps(connected, missing, probe(deniedFault)), phase: PhaseWaiting, reason: ReasonKubeconfigMissing,
			orders: orders{disconnect: true, refresh: true}, plan: "wait for an event",
		},
		"a component that fails to engage backs off": {
			steps: steps(connected, engageFailed), phase: PhaseUnreachable, reason: ReasonEngageFailed, orders: orders{disconnect: true}, plan: "1s",
		},
		"again, further": {
			steps: steps(connected, engageFailed, after(time.Second), planned, dialled(nil), engageFailed),
			phase: PhaseUnreachable, reason: ReasonEngageFailed, orders: orders{disconnect: true}, plan: "2s",
		},
		"a new version": {
			steps: steps(connected, after(time.Minute), planned, probed("v1.37.0", nil)), phase: PhaseConnected, reason: ReasonConnected, plan: "1m0s",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			for _, s := range tc.steps {
				w.orders, w.adopted = orders{}, false
				s(w)
			}
			s := w.state()
			if s.Phase != tc.phase || s.Reason != tc.reason || !strings.Contains(s.Message, tc.says) {
				t.Errorf("state %+v, want %s/%s %q", s, tc.phase, tc.reason, tc.says)
			}
			if w.orders != tc.orders || w.adopted != tc.adopt {
				t.Errorf("orders %+v, adopted %t, want %+v, %t", w.orders, w.adopted, tc.orders, tc.adopt)
			}
			if got := describePlan(w.plan(w.now), w.now); got != tc.plan {
				t.Errorf("plan %q, want %q", got, tc.plan)
			}
			if name == "a new version" && s.ServerVersion != "v1.37.0" {
				t.Errorf("version %q", s.ServerVersion)
			}
		})
	}
}

func describePlan(p plan, now time.Time) string {
	switch {
	case p.dial && p.retry:
		return "retry"
	case p.dial:
		return "dial"
	case p.probe:
		return "probe"
	case p.again.IsZero():
		return "wait for an event"
	default:
		return fmt.Sprint(p.again.Sub(now))
	}
}

func TestBackoff(t *testing.T) {
	for random, want := range map[float64]string{
		0: "[1s 2s 4s 8s 16s 32s 1m0s 1m0s]",
		1: "[500ms 1s 2s 4s 8s 16s 30s 30s]",
	} {
		o := Options{Random: func() float64 { return random }}.defaulted()
		var got []time.Duration
		for failures := range 8 {
			got = append(got, backoff(o, failures+1))
		}
		if fmt.Sprint(got) != want {
			t.Errorf("random %g: %v, want %s", random, got, want)
		}
	}
	o := Options{}.defaulted()
	if got := backoff(o, 1_000_000_000); got > o.RetryMax {
		t.Errorf("%s after many failures", got)
	}
}

// TestVersions has a control plane with several API servers, of which each probe sees one.
func TestVersions(t *testing.T) {
	for seen, want := range map[string]string{
		"v1.37.0": "v1.37.0",
		"v1.37.0 v1.36.3 v1.37.0 v1.36.3 v1.36.3": "v1.37.0", // a rolling upgrade
		"v1.35.9 v1.35.9":                         "v1.36.3",
		"v1.35.9 v1.35.9 v1.35.9":                 "v1.35.9", // restored, or behind the name is another one now
		"v1.35.9 v1.36.3 v1.35.9 v1.35.9":         "v1.36.3",
		"v1.36.2-eks.1 v1.36.3":                   "v1.36.3",
		"vnext":                                   "vnext",
		"vnext v1.36.3":                           "v1.36.3",
	} {
		w := newWorld()
		for _, s := range []step{accepted("1"), planned, dialled(nil)} {
			s(w)
		}
		for version := range strings.FieldsSeq(seen) {
			for _, s := range []step{after(time.Minute), planned, probed(version, nil)} {
				s(w)
			}
		}
		if got := w.state().ServerVersion; got != want {
			t.Errorf("%s: %s, expected %s", seen, got, want)
		}
		for _, s := range []step{probed("", deniedFault), after(time.Second), planned, dialled(deniedFault), after(time.Minute), planned} {
			s(w)
		}
		w.dialled(w.now, "v1.30.0", nil)
		if got := w.state().ServerVersion; got != "v1.30.0" {
			t.Errorf("%s: %s once it is connected again", seen, got)
		}
	}
}
