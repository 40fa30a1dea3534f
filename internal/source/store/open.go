// SPDX-License-Identifier: Apache-2.0

package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"
)

// errNoFile says that there was something else in a file's place.
var errNoFile = fmt.Errorf("it is no file: %w", fs.ErrNotExist)

// open opens a file. Where the directory has something in its place that isn't one, or
// another user's that we may not open, that would be in the way for ever: it is removed.
func open(root *os.Root, name string, flag int) (*os.File, fs.FileInfo, error) {
	file, info, err := openAsItIs(root, name, flag)
	if !errors.Is(err, errNoFile) && !errors.Is(err, fs.ErrPermission) {
		return file, info, err
	}
	removed := root.RemoveAll(name)
	if flag&os.O_CREATE == 0 {
		return nil, nil, errors.Join(fs.ErrNotExist, err, removed)
	}
	if removed != nil {
		return nil, nil, removed
	}
	return openAsItIs(root, name, flag)
}

func openAsItIs(root *os.Root, name string, flag int) (*os.File, fs.FileInfo, error) {
	if info, err := root.Lstat(name); err == nil && !info.Mode().IsRegular() {
		return nil, nil, errNoFile
	}
	// Not blocking, as it may be a pipe by now that nobody else opens.
	file, err := root.OpenFile(name, flag|syscall.O_NONBLOCK, ownerOnlyFile)
	if err != nil {
		return nil, nil, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errNoFile
	}
	if err != nil {
		return nil, nil, errors.Join(err, file.Close())
	}
	return file, info, nil
}

// touch notes that a file is in use, now and then.
func touch(root *os.Root, name string, info fs.FileInfo, data []byte, now time.Time) {
	if age(now, info.ModTime()) <= touchEvery {
		return
	}
	if err := root.Chtimes(name, now, now); !errors.Is(err, fs.ErrPermission) {
		return // also on a read-only disk, where its age doesn't matter
	}
	// It is another user's: the manager ran as that one before. It becomes ours.
	_ = write(root, name, data, now) // it was read; if it stays as it is, it just goes earlier
}

// age is how long ago something was used. Times to come are as far off: then the clock
// was set back, and what was used since then has another time by now.
func age(now, used time.Time) time.Duration { return now.Sub(used).Abs() }
