// SPDX-License-Identifier: Apache-2.0

package transport

import "fmt"

// Reasons of a Fault, which are those of a cluster's state.
const (
	AddressRefused       = "AddressRefused"
	NameResolutionFailed = "NameResolutionFailed"
	ConnectionRefused    = "ConnectionRefused"
	ConnectionTimedOut   = "ConnectionTimedOut"
	ConnectionFailed     = "ConnectionFailed"
	TLSFailed            = "TLSFailed"
	ResponseTimedOut     = "ResponseTimedOut"
	Unauthorized         = "Unauthorized"
	Forbidden            = "Forbidden"
	ProbeFailed          = "ProbeFailed"
)

// Fault is one failed attempt, probe or engagement.
type Fault struct {
	// Reason is one of the reasons of a cluster's state.
	Reason string
	// Message is for people: deterministic, and without a credential.
	Message string
}

// Error implements error.
func (f *Fault) Error() string { return f.Reason + ": " + f.Message }

// Subject is what a fault is about.
type Subject struct {
	Host   string // host:port of the server
	Origin string // where its kubeconfig is kept
}

// Fault returns a Fault whose message begins with the server.
func (s Subject) Fault(reason, format string, args ...any) *Fault {
	return &Fault{Reason: reason, Message: s.Host + " " + fmt.Sprintf(format, args...)}
}
