// SPDX-License-Identifier: Apache-2.0

// Package arbiter decides which instance gets its scope, so that no two that
// run at the same time look after one object. It runs in the process that serves
// the webhooks. Why the protocol is safe: docs/design/instances.md.
//
// An Observer knows who is alive, judge holds the rules, and an Arbiter puts
// both together for admission.
package arbiter
