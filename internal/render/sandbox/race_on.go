// SPDX-License-Identifier: Apache-2.0

//go:build race

package sandbox

// RaceDetector reports whether this program was built with it.
const RaceDetector = true
