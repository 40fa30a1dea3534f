// SPDX-License-Identifier: Apache-2.0

// Package versions tells exact versions from ranges, and picks the newest version
// that a range allows. Both are read as Helm reads them.
package versions
