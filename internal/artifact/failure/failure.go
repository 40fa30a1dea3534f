// SPDX-License-Identifier: Apache-2.0

// Package failure says why an artifact can't be had: with a reason, the field that is to
// blame, and the way out.
package failure

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// Reasons of an [Error]. They are stable: conditions, events and metrics carry them.
const (
	// ArtifactNotFound: the object, its key, or the path isn't there (yet).
	ArtifactNotFound = "ArtifactNotFound"
	// ArtifactInvalid: what is there isn't a chart: no archive, a broken one, no Chart.yaml.
	ArtifactInvalid = "ArtifactInvalid"
	// ArtifactTooLarge: the chart is beyond one of the limits.
	ArtifactTooLarge = "ArtifactTooLarge"
	// ArtifactRefused: the archive or path has something that no honest chart
	// needs: names that leave the chart, links, devices, hidden content.
	ArtifactRefused = "ArtifactRefused"
	// ArtifactChanged: the content isn't what it was when it was resolved.
	// Resolve again.
	ArtifactChanged = "ArtifactChanged"
	// SourceDisabled: this provider was started without the kind of source.
	SourceDisabled = "SourceDisabled"
	// ArtifactPending: it takes longer than usual to get the chart; that goes on.
	ArtifactPending = "ArtifactPending"
	// DigestMismatch: the content doesn't have the digest that the object, or
	// the source itself, says it has.
	DigestMismatch = "DigestMismatch"
	// SourceUnavailable: the source could not be asked. Try again, with backoff.
	SourceUnavailable = "SourceUnavailable"
	// SourceUnauthorized: the source wants credentials, or other ones.
	SourceUnauthorized = "SourceUnauthorized"
	// SignatureMissing: verify, or the instance, wants a signature, and there is none.
	SignatureMissing = "SignatureMissing"
	// SignatureInvalid: there are signatures, but none by whom verify, or the instance, wants.
	SignatureInvalid = "SignatureInvalid"
	// VerificationPolicyInvalid: verify, or a key that it names, can't be used.
	VerificationPolicyInvalid = "VerificationPolicyInvalid"
)

// ofContent are the reasons: true if it is about what the source gave, and not about the source.
var ofContent = map[string]bool{
	ArtifactNotFound: true, ArtifactInvalid: true, ArtifactTooLarge: true, ArtifactRefused: true, ArtifactChanged: true,
	DigestMismatch: true, SignatureMissing: true, SignatureInvalid: true,
	SourceDisabled: false, ArtifactPending: false, SourceUnavailable: false, SourceUnauthorized: false, VerificationPolicyInvalid: false,
}

// IsReason reports whether a reason is one of an [Error]: it is about where something
// comes from, and not about what becomes of it.
func IsReason(reason string) bool {
	_, is := ofContent[reason]
	return is
}

// Error says why a chart can't be had. Its text is the same as long as the cause
// is, holds no content of the chart or of a Secret, and names the way out.
type Error struct {
	// Reason is one of the constants above.
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

// TooLarge words the refusal of something that is larger than a limit.
func TooLarge(what string, limit int64) *Error {
	return New(ArtifactTooLarge, "%s is larger than %d bytes, the most that is accepted; make it smaller", what, limit)
}

// TooMany returns the error of a list without end.
func TooMany(what string, most int) *Error {
	return New(ArtifactTooLarge, "it has more than %d %s; name an exact version", most, what)
}

// IfFollowed is what else to do about a version that has another digest now, as those of
// a range have that were taken: nobody wrote the digest.
const IfFollowed = "If the stack follows a range, the version was published anew, or removed, since it was taken: publish a newer one, or narrow the range"

// Quote shows the start of a name, fit for a message.
func Quote(name string) string {
	const shown = 96 // bytes
	if len(name) > shown {
		return strconv.QuoteToASCII(name[:shown]) + "..."
	}
	return strconv.QuoteToASCII(name)
}

// Changed returns the error of content that was overwritten between two looks at it.
func Changed() *Error {
	return New(ArtifactChanged, "the content changed while it was read; it will be read again")
}

// NotPublished returns the error of a chart that the source doesn't have.
func NotPublished(format string, args ...any) *Error {
	missing := New(ArtifactNotFound, format, args...)
	missing.Wait = true
	return missing
}

// Gone returns the error of a version that isn't what it was.
func Gone(digest, wayOut string) *Error {
	return New(ArtifactChanged, "the source no longer has the content that this version was resolved to (%s); %s", digest, wayOut)
}

const (
	// FirstRetry is the time until the second try; each later one takes twice as long.
	FirstRetry = time.Second
	// jitter is added at random, as part of the time, so that sources aren't asked in step.
	jitter = 0.25

	// The longest times between two tries.

	// MaxUnavailable is that of a source that may be back at any time.
	MaxUnavailable = 15 * time.Second
	// MaxNotFound is that of content that may be published at any time.
	MaxNotFound = time.Minute
	// MaxRetry is that of what somebody has to mend.
	MaxRetry = 5 * time.Minute
)

// Backoff returns the time until the next try, after so many failures before this one.
func Backoff(reason string, failures int) time.Duration {
	most := MaxRetry
	switch reason {
	case SourceUnavailable:
		most = MaxUnavailable
	case ArtifactNotFound, SignatureMissing:
		most = MaxNotFound
	}
	delay := FirstRetry << min(failures, 16)
	return wait.Jitter(min(delay, most), jitter)
}
