// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
)

// Directory holds the instance's own credentials, in files named like the keys
// of a Secret. It may be missing, and is read again each time: so it can be changed
// without a restart.
type Directory string

// Load reads the directory. A missing one has no credentials.
func (d Directory) Load() (Set, error) {
	if d == "" {
		return Set{}, nil
	}
	data, err := ReadFiles(string(d))
	if errors.Is(err, fs.ErrNotExist) {
		return Set{}, nil
	}
	if err != nil {
		return Set{}, err
	}
	return newSet(data, true)
}

// ReadFiles reads the files of a directory that is a mounted Secret or ConfigMap.
func ReadFiles(directory string) (map[string][]byte, error) {
	root, err := os.OpenRoot(directory)
	if err != nil {
		return nil, unreadable(err)
	}
	defer func() { _ = root.Close() }() // only read from
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return nil, unreadable(err)
	}
	data, left := map[string][]byte{}, int64(maxTotal)
	for _, entry := range entries {
		// Kubernetes keeps names that start with two dots to itself.
		if entry.IsDir() || strings.HasPrefix(entry.Name(), "..") {
			continue
		}
		content, err := read(root, entry.Name(), left)
		if err != nil {
			return nil, err
		}
		left -= int64(len(content))
		data[entry.Name()] = content
	}
	return data, nil
}

// read reads a regular file; anything else has no content.
func read(root *os.Root, name string, most int64) ([]byte, error) {
	// Not blocking, as it may be a pipe that nobody writes to.
	file, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) { // it went away meanwhile
		return nil, nil
	}
	if err != nil {
		return nil, unreadable(err)
	}
	defer func() { _ = file.Close() }() // only read from
	if info, err := file.Stat(); err == nil && !info.Mode().IsRegular() {
		return nil, nil
	}
	content, err := io.ReadAll(io.LimitReader(file, most+1))
	if err != nil {
		return nil, unreadable(err)
	}
	if int64(len(content)) > most {
		return nil, errors.New("the files are larger than a Secret can be; take out what isn't needed")
	}
	return content, nil
}

// unreadable leaves the directory's place out of the message.
func unreadable(err error) error {
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		err = at.Err
	}
	return fmt.Errorf("the directory can't be read: %w; see to it that the provider may read it", err)
}
