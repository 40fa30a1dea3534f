// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package render

// ProtectMemory does nothing outside of Linux, where Chandler is only developed.
func ProtectMemory() error { return nil }
