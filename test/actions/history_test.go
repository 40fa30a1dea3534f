// SPDX-License-Identifier: Apache-2.0

package actions

import (
	"fmt"
	"strings"
	"time"
)

// lag is how long Chandler may not know of a change yet, on a busy machine. It ends early when Chandler was seen at rest.
const lag = 40 * time.Second

// moment is a change of what is wanted. The API servers have it at some time between begin and end.
type moment struct {
	begin, end time.Time
	*model
}

// history keeps the models of all times, and the times at which Chandler knew the newest.
type history struct {
	moments []moment
	known   []time.Time
	actions []string
}

// now returns the newest model.
func (h *history) now() *model { return h.moments[len(h.moments)-1].model }

// record keeps what is wanted from now on, and calls write to bring it about.
func (h *history) record(m *model, write func()) {
	begin := time.Now()
	m.follow(begin, h.now())
	h.moments = append(h.moments, moment{begin: begin, model: m})
	write()
	h.moments[len(h.moments)-1].end = time.Now()
}

// change derives a model from the newest one, and records it.
func (h *history) change(mutate func(*model), write func()) {
	m := h.now().clone()
	mutate(m)
	h.record(m, write)
}

// know notes that Chandler has nothing to do any more, or starts without any memory.
func (h *history) know() { h.known = append(h.known, time.Now()) }

// believable returns the models that Chandler may have acted by at a time. Since says that an earlier one than usual counts.
func (h *history) believable(at, since time.Time) []*model {
	from := at.Add(-lag)
	for _, known := range h.known {
		if known.Before(at) && known.After(from) {
			from = known
		}
	}
	if !since.IsZero() && since.Before(from) {
		from = since
	}
	var all []*model
	for i, m := range h.moments {
		last := i == len(h.moments)-1
		if m.begin.Before(at) && (last || !h.moments[i+1].end.Before(from)) {
			all = append(all, m.model)
		}
	}
	return all
}

// act notes what the operator does.
func (h *history) act(format string, arguments ...any) {
	h.actions = append(h.actions, time.Now().UTC().Format("15:04:05.000 ")+fmt.Sprintf(format, arguments...))
}

func (h *history) String() string { return strings.Join(h.actions, "\n") }
