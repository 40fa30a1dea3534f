// SPDX-License-Identifier: Apache-2.0

package local

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/cluster-chandler/chandler/internal/artifact/failure"
)

// readFile reads a regular file of at most that many bytes.
func readFile(root *os.Root, name string, most int64) ([]byte, error) {
	// Not blocking, as the file may have become a pipe that nobody writes to.
	file, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, pathError(root, name, err)
	}
	defer closeRead(file)
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		return nil, irregular(name)
	}
	data, err := io.ReadAll(io.LimitReader(file, most+1))
	switch {
	case err != nil:
		return nil, pathError(root, name, err)
	case int64(len(data)) > most:
		return nil, failure.TooLarge(failure.Quote(name), most)
	}
	return data, nil
}

// rootError is the error of an artifact root that is gone. It doesn't tell where that was.
func rootError(err error) error {
	return failure.New(failure.SourceUnavailable, "the artifact root can't be opened: %w; see to it that the provider may read the directory of --artifact-root", cause(err))
}

// pathError words what the file system said of a name.
func pathError(root *os.Root, name string, err error) error {
	// os exports no error for a path that escapes; asking for one gives it.
	_, escapes := root.Lstat("..")
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return failure.NotPublished("there is no %s; put it there, or correct the path", failure.Quote(name))
	case errors.Is(err, cause(escapes)), errors.Is(err, syscall.ELOOP), errors.Is(err, syscall.ENAMETOOLONG):
		return failure.New(failure.ArtifactRefused, "%s leads out of the artifact root, or can't be followed; put the file itself there", failure.Quote(name))
	}
	return failure.New(failure.SourceUnavailable, "%s can't be read: %w; see to it that the provider may read it", failure.Quote(name), cause(err))
}

func irregular(name string) error {
	return failure.New(failure.ArtifactRefused, "%s is neither a file nor a directory; put the file itself there, or take it out", failure.Quote(name))
}

// cause takes the path off a file system's error.
func cause(err error) error {
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		return at.Err
	}
	return err
}

// closeRead closes what was only read from: there is nothing left to fail.
func closeRead(closer io.Closer) { _ = closer.Close() }
