// SPDX-License-Identifier: Apache-2.0

// Package flight makes one request of many that want the same, and holds up none of them.
//
// A caller [Board]s a flight. Reconciles are worth more than the answer of one slow host:
// they wait a moment ([WithSharedPatience]), go on with what is known, and are woken when
// the flight has landed ([WithWaker]).
package flight
