// SPDX-License-Identifier: Apache-2.0

package store

import (
	"errors"
	"os"
	"time"
)

// patience is how long an operation may take. What hangs, as an NFS volume does whose
// server is away, would stop whoever wants an archive.
const patience = time.Minute

var errHangs = errors.New("the volume doesn't answer")

// within does something in the directory. If that takes too long, it is left behind;
// until it has ended after all, the directory isn't used.
func within[T any](s *Store, create bool, do func(*os.Root) (T, error)) (T, error) {
	type outcome struct {
		value T
		err   error
	}
	var none T
	if s.hanging.Load() > 0 {
		return none, errHangs
	}
	ended := make(chan outcome, 1)
	go func() {
		value, err := inside(s.directory, create, do)
		ended <- outcome{value, err}
	}()
	timeout := time.NewTimer(s.patience)
	defer timeout.Stop()
	select {
	case got := <-ended:
		return got.value, got.err
	case <-timeout.C:
		s.hanging.Add(1)
		go func() {
			<-ended
			s.hanging.Add(-1)
		}()
		return none, errHangs
	}
}

// inside opens the directory anew each time: it may have been emptied, or removed.
func inside[T any](directory string, create bool, do func(*os.Root) (T, error)) (value T, err error) {
	if create {
		if err := os.MkdirAll(directory, ownerOnlyDirectory); err != nil {
			return value, err
		}
	}
	root, err := os.OpenRoot(directory)
	if err != nil {
		return value, err
	}
	value, err = do(root)
	return value, errors.Join(err, root.Close())
}

// change does something in the directory that has no other outcome, and makes it if it is missing.
func (s *Store) change(do func(*os.Root) error) error {
	_, err := within(s, true, func(root *os.Root) (struct{}, error) { return struct{}{}, do(root) })
	return err
}
