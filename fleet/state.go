// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"
	"time"
)

// Phase says how far the connection to a cluster has come.
type Phase string

const (
	// PhaseUnknown: no source has reported such a cluster.
	PhaseUnknown Phase = "Unknown"
	// PhaseWaiting: the cluster has no kubeconfig yet.
	PhaseWaiting Phase = "Waiting"
	// PhaseConnecting: the first attempt with this kubeconfig is under way.
	PhaseConnecting Phase = "Connecting"
	// PhaseConnected: the cluster answers and has a Connection.
	PhaseConnected Phase = "Connected"
	// PhaseUnreachable: attempts fail; they are repeated with backoff.
	PhaseUnreachable Phase = "Unreachable"
	// PhaseRefused: the kubeconfig isn't acceptable, and nothing is tried until it changes; or
	// another name has the cluster.
	PhaseRefused Phase = "Refused"
)

// phases lists the phases that a known cluster can be in.
var phases = []Phase{PhaseWaiting, PhaseConnecting, PhaseConnected, PhaseUnreachable, PhaseRefused}

// Reasons of a State. They are stable: conditions and alerts may name them.
const (
	// ReasonClusterUnknown: no source has reported such a cluster.
	ReasonClusterUnknown = "ClusterUnknown"
	// ReasonKubeconfigMissing: there is no kubeconfig (yet).
	ReasonKubeconfigMissing = "KubeconfigMissing"
	// ReasonKubeconfigUnreadable: the source has the kubeconfig, but can't read it.
	ReasonKubeconfigUnreadable = "KubeconfigUnreadable"
	// ReasonKubeconfigRefused: the kubeconfig isn't acceptable.
	ReasonKubeconfigRefused = "KubeconfigRefused"
	// ReasonConnecting: the first attempt is under way.
	ReasonConnecting = "Connecting"
	// ReasonConnected: the cluster answers.
	ReasonConnected = "Connected"
	// ReasonAddressRefused: the host resolves to an address that is never dialled.
	ReasonAddressRefused = "AddressRefused"
	// ReasonNameResolutionFailed: the host name can't be resolved.
	ReasonNameResolutionFailed = "NameResolutionFailed"
	// ReasonConnectionRefused: nothing listens at the address.
	ReasonConnectionRefused = "ConnectionRefused"
	// ReasonConnectionTimedOut: no connection, or one on which not a byte came back.
	ReasonConnectionTimedOut = "ConnectionTimedOut"
	// ReasonConnectionFailed: any other failure of the network.
	ReasonConnectionFailed = "ConnectionFailed"
	// ReasonTLSFailed: the TLS handshake failed or stalled half way.
	ReasonTLSFailed = "TLSFailed"
	// ReasonResponseTimedOut: connected, but no complete answer in time.
	ReasonResponseTimedOut = "ResponseTimedOut"
	// ReasonResponseTooLarge: the server answered with more than the manager accepts.
	ReasonResponseTooLarge = "ResponseTooLarge"
	// ReasonUnauthorized: the server doesn't accept the credentials (401).
	ReasonUnauthorized = "Unauthorized"
	// ReasonForbidden: the credentials may not read /version (403).
	ReasonForbidden = "Forbidden"
	// ReasonProbeFailed: a server answers, but not as a Kubernetes API server
	// does, or a connected cluster stopped answering its probes.
	ReasonProbeFailed = "ProbeFailed"
	// ReasonEngageFailed: the cluster answers, but a component could not start on it.
	ReasonEngageFailed = "EngageFailed"
	// ReasonDuplicateCluster: another source, which comes first, names the same cluster, or an older object of the same source.
	ReasonDuplicateCluster = "DuplicateCluster"
	// ReasonClusterRestored: the cluster shows a previous state, and is connected again.
	ReasonClusterRestored = "ClusterRestored"
)

// State is what is known about the connection to one cluster.
type State struct {
	Phase Phase
	// Reason is one of the Reason constants. It explains the Phase, and in
	// PhaseConnected also says why a newer kubeconfig is not in use.
	Reason string
	// Message is for people: deterministic, names the host and the origin of
	// the kubeconfig and the way out, and never holds a credential.
	Message string
	// Since is when Phase or Reason last changed.
	Since time.Time
	// ServerVersion is the last seen Kubernetes version, e.g. "v1.36.3".
	ServerVersion string
}

// same tells whether two states say the same to a subscriber.
func (s State) same(o State) bool {
	s.Since = o.Since
	return s == o
}

// unknown is the state of a cluster that no source has reported.
var unknown = State{Phase: PhaseUnknown, Reason: ReasonClusterUnknown, Message: "No such cluster in the scope of this instance"}

// state describes the connection. It keeps still while attempts fail the same
// way, so conditions made from it don't flap.
func (m *machine) state() State {
	s := State{
		Phase: PhaseConnecting, Reason: ReasonConnecting, Message: "Connecting with the kubeconfig in " + m.origin,
		ServerVersion: m.version,
	}
	switch {
	case m.refusal != "":
		s.Phase, s.Reason = PhaseRefused, ReasonKubeconfigRefused
		s.Message = fmt.Sprintf("The kubeconfig in %s is refused: %s", m.origin, m.refusal)
	case m.problem != "" && (m.missing || m.using != "" && m.fault == nil):
		s.Phase, s.Reason, s.Message = PhaseWaiting, ReasonKubeconfigUnreadable, m.origin+" "+m.problem
	case m.missing:
		s.Phase, s.Reason = PhaseWaiting, ReasonKubeconfigMissing
		s.Message = m.origin + " is missing: it appears with the control plane. If that is up, see what deleted it, and have it made again"
	case m.fault != nil:
		s.Phase, s.Reason, s.Message = PhaseUnreachable, m.fault.Reason, m.fault.Message
		if m.fault.Reason == ReasonDuplicateCluster {
			s.Phase = PhaseRefused
		}
	case m.using != "":
		s.Phase, s.Reason, s.Message = PhaseConnected, ReasonConnected, "Connected"
		return s
	}
	if m.using != "" {
		s.Phase = PhaseConnected
		s.Message += ". The cluster is connected with an earlier kubeconfig, until that is refused or the manager restarts"
	}
	return s
}
