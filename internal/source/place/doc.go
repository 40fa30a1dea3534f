// SPDX-License-Identifier: Apache-2.0

// Package place says what a place on another host is, whatever protocol it speaks.
package place
