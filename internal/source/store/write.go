// SPDX-License-Identifier: Apache-2.0

package store

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
	"time"

	utilrand "k8s.io/apimachinery/pkg/util/rand"
)

// temporary starts the names of files that are being written.
const temporary = ".new-"

// write makes a file that has all of its content, or isn't there.
func write(root *os.Root, name string, data []byte, now time.Time) (err error) {
	unfinished := temporary + name + "-" + utilrand.String(8)
	file, err := root.OpenFile(unfinished, os.O_WRONLY|os.O_CREATE|os.O_EXCL, ownerOnlyFile)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = root.Remove(unfinished) // if it can't be, it is cleared away later
		}
	}()
	_, err = file.Write(data)
	if err == nil {
		// After a power failure there is no name without content. That the name is
		// lost with it does no harm, so the directory isn't synced.
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	if err = root.Chtimes(unfinished, now, now); err != nil {
		return err
	}
	err = root.Rename(unfinished, name)
	if errors.Is(err, fs.ErrExist) || errors.Is(err, syscall.EISDIR) {
		// A directory has its name. It has no business here.
		err = errors.Join(root.RemoveAll(name), root.Rename(unfinished, name))
	}
	return err
}
