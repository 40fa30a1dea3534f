// SPDX-License-Identifier: Apache-2.0

package store

import (
	"errors"
	"io/fs"
	"sync"

	"github.com/go-logr/logr"
)

// What may be sick. A read-only disk can be read: this says nothing of writing.
const (
	reading = iota
	writing
	parts
)

// health remembers whether the directory can be used, to say it once.
type health struct {
	log logr.Logger

	mu   sync.Mutex
	sick [parts]bool
}

// reportRead takes the outcome of a look for something. That it isn't there is none.
func (h *health) reportRead(err error) {
	if isGone(err) {
		err = nil
	}
	h.report(reading, err)
}

// report takes the outcome of an operation.
func (h *health) report(part int, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	before := h.sick
	h.sick[part] = err != nil
	if h.sick == [parts]bool{} {
		usable.Set(1)
		if before != h.sick {
			h.log.Info("The cache can be used again")
		}
	} else {
		usable.Set(0)
		if before == [parts]bool{} {
			h.log.Info("The cache can't be used; archives are kept in memory only, and fetched again when they are needed", "problem", reasonOf(err))
		}
	}
}

// reasonOf leaves the file's name out, which is another one each time.
func reasonOf(err error) string {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Op + ": " + at.Err.Error()
	}
	return err.Error()
}
