// SPDX-License-Identifier: Apache-2.0

// Package failure has the one kind of error that a user can act on: with a reason, the field that is to
// blame, and the way out. Sources, rendering and delivery return it, and conditions show it.
package failure

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Error says why an add-on can't be installed, or a chart can't be had. Its text is the same as long as the cause
// is, holds no content of the chart or of a Secret, and names the way out.
type Error struct {
	// Reason is one of the constants of this package or of another one. It is stable.
	Reason string
	// Field of the add-on that the reference is in, as in "chart.path".
	Field string
	// Part of the reference's field that it is about, as ".secretRef": who knows the
	// reference puts it behind Field.
	Part string
	// Subject is the object or path that was looked at.
	Subject string
	// Err is the cause.
	Err error
	// Wait is set when nothing is wrong but something isn't there yet: an event
	// will tell, and a retry before it is of no use.
	Wait bool
	// Again is set while the source is asked again: this is what is known until it answers.
	Again bool
	// RetryAfter is when to ask again, as no event will tell. It is set for sources
	// on other hosts: sooner, they aren't asked again, but repeat the error.
	RetryAfter time.Duration
}

// Error returns the field, the subject and the cause.
func (e *Error) Error() string {
	parts := make([]string, 0, 3)
	for _, part := range []string{e.Field, e.Subject} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(append(parts, e.Err.Error()), ": ")
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Passes reports whether it may end without a person: an event tells, or the source is asked again.
func (e *Error) Passes() bool { return e.Wait || e.Again || e.RetryAfter > 0 }

// OfContent reports whether it is about what the source gave, and not about the source.
func (e *Error) OfContent() bool { return ofContent[e.Reason] }

// New makes an Error that doesn't know yet where it is: Field and Subject are left to
// who knows the reference.
func New(reason, format string, args ...any) *Error {
	return &Error{Reason: reason, Err: fmt.Errorf(format, args...)}
}

// Of returns the [Error] in an error. An error that has no reason is of a source that could not be
// asked.
func Of(err error) *Error {
	if known, ok := errors.AsType[*Error](err); ok {
		return known
	}
	return &Error{Reason: SourceUnavailable, Err: err}
}

// Within returns the error with its place in front of its cause. An error that isn't an [Error]
// stays as it is.
func Within(where string, err error) error {
	known, ok := errors.AsType[*Error](err)
	if !ok {
		return err
	}
	located := *known
	located.Err = fmt.Errorf("%s: %w", where, known.Err)
	return &located
}

// Quote shows the start of a name, fit for a message.
func Quote(name string) string {
	const shown = 96 // bytes
	if len(name) > shown {
		return strconv.QuoteToASCII(name[:shown]) + "..."
	}
	return strconv.QuoteToASCII(name)
}
