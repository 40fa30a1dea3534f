// SPDX-License-Identifier: Apache-2.0

// Package refusal remembers what sources gave that was refused, and says when they are
// asked for it again.
package refusal
