// SPDX-License-Identifier: Apache-2.0

// Package fleet is the provider layer: it finds the workload clusters of a
// fleet and keeps a connection to each that can be reached.
//
// A [Source] discovers clusters and hands over their kubeconfigs. For each of
// them a [Provider] runs a link, which connects, probes, reconnects and reports
// a [State]. Reconcilers ask the Provider for a [Connection] by name, and
// subscribe to changes.
//
//	Source ── Member ──▶ Provider ──▶ link ──▶ Connection ──▶ Aware (Engage)
//	                                    └────▶ State ───────▶ Subscribe
//
// What a link does next is decided by a pure state machine (machine.go); the
// link itself (link.go) only acts. No link waits for another: attempts run in
// parallel, each with a deadline, and a cluster is engaged only after it has
// answered a probe.
//
// A reconciler gets three errors that aren't client-go's: see [Provider.Get].
//
// A kubeconfig is hostile input. Package kubeconfig is the one place that reads
// one.
package fleet
