// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"io/fs"
	"os"
	"path"
	"strings"
)

// maxLinks is how many links one path may lead through, as in Linux.
const maxLinks = 40

// trail returns the directories, without links in their names, that a path
// relative to the root leads through: where a change can make it lead elsewhere.
// It ends where the path does, or at the first part that is missing.
func trail(root *os.Root, name string) []string {
	at, directories := ".", []string{"."}
	left := strings.Split(path.Clean(name), "/")
	for links := 0; len(left) > 0; {
		full := path.Join(at, left[0])
		left = left[1:]
		if !fs.ValidPath(full) { // out of the root
			return directories
		}
		info, err := root.Lstat(full)
		switch {
		case err != nil:
			return directories
		case info.Mode()&fs.ModeSymlink != 0:
			target, err := root.Readlink(full)
			if links++; err != nil || links > maxLinks || path.IsAbs(target) {
				return directories
			}
			left = append(strings.Split(target, "/"), left...)
		case info.IsDir():
			at = full
			directories = append(directories, full)
		}
	}
	return directories
}
