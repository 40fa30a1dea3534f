// SPDX-License-Identifier: Apache-2.0

package local

import (
	"io/fs"
	"syscall"
)

// inode tells a file from another that took its place with the same size and time.
func inode(info fs.FileInfo) uint64 {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return stat.Ino
	}
	return 0
}
