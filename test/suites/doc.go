// SPDX-License-Identifier: Apache-2.0

// Package suites runs multicluster-runtime's own tests of its providers against the sources of module fleet. Each folder
// has what those tests call, made of the library. The tests themselves are those of the released module.
package suites
