// SPDX-License-Identifier: Apache-2.0

// Package actions has a seeded operator do random things to a fleet. It evaluates Chandler's deletions by the audit logs of
// the clusters. A model knows what the operator wanted at each time.
package actions
