// SPDX-License-Identifier: Apache-2.0

// Package reference says which artifact is meant, where it is, and how it is asked for.
// It is pure: nothing is asked here.
package reference
