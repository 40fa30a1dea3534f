// SPDX-License-Identifier: Apache-2.0

package observe

import "runtime/debug"

// Panic is one that a goroutine recovered from, to be told where it can be handled.
type Panic struct {
	Value any
	Stack []byte
}

// PanicOf returns what was recovered, with the stack of the caller; nil for nothing.
func PanicOf(recovered any) *Panic {
	if recovered == nil {
		return nil
	}
	return &Panic{Value: recovered, Stack: debug.Stack()}
}

// Panicked returns the panic that ended a watch, nil if none did.
func (t *Tracker) Panicked() *Panic {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.panicked
}
