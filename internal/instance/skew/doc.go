// SPDX-License-Identifier: Apache-2.0

// Package skew finds out whether an API server serves all that this program
// reads and writes of its own API. What a CRD doesn't have, the API server drops
// without a word: the program would write it again and again.
//
// It looks at the published schema, which everybody may read: an instance needs
// no right to read CRDs.
package skew
