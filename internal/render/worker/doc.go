// SPDX-License-Identifier: Apache-2.0

// Package worker is the program of a render worker. It takes away its own rights, and answers requests until the
// manager closes its pipe.
package worker
