// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// ProtectMemory keeps other processes of the same user from reading this one's memory, and
// the kernel from writing it to a file. A worker runs as the manager's user.
func ProtectMemory() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("keeping others from reading this process: %w", err)
	}
	return nil
}
