// SPDX-License-Identifier: Apache-2.0

// Package actions has a seeded operator do random things to a fleet, and judges by the audit logs of its clusters what
// Chandler deleted there. A model knows what the operator wanted at each time.
package actions
