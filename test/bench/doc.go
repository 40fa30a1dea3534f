// SPDX-License-Identifier: Apache-2.0

// Package bench measures what a fleet costs: the built manager outfits real API servers with published charts, and beside it
// the leanest client applies the same objects. See docs/performance.md.
package bench
