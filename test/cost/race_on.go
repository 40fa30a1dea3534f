// SPDX-License-Identifier: Apache-2.0

//go:build race

package cost

// raceEnabled tells that the race detector slows everything down.
const raceEnabled = true
