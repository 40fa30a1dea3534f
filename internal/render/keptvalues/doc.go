// SPDX-License-Identifier: Apache-2.0

// Package keptvalues keeps the values that templates generate, as passwords and certificates: a rendering gets the
// values of the previous one where they were.
package keptvalues
