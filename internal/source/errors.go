// SPDX-License-Identifier: Apache-2.0

package source

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Reasons of an [Error]. They are stable: conditions, events and metrics carry them.
const (
	// ReasonArtifactNotFound: the object, its key, or the path isn't there (yet).
	ReasonArtifactNotFound = "ArtifactNotFound"
	// ReasonArtifactInvalid: what is there isn't a chart: no archive, a broken one, no Chart.yaml.
	ReasonArtifactInvalid = "ArtifactInvalid"
	// ReasonArtifactTooLarge: the chart is beyond one of the [Limits].
	ReasonArtifactTooLarge = "ArtifactTooLarge"
	// ReasonArtifactRefused: the archive or path has something that no honest chart
	// needs: names that leave the chart, links, devices, hidden content.
	ReasonArtifactRefused = "ArtifactRefused"
	// ReasonArtifactChanged: the content isn't what it was when it was resolved.
	// Resolve again.
	ReasonArtifactChanged = "ArtifactChanged"
	// ReasonSourceDisabled: this provider was started without the kind of source.
	ReasonSourceDisabled = "SourceDisabled"
	// ReasonArtifactPending: it takes longer than usual to get the chart; that goes on.
	ReasonArtifactPending = "ArtifactPending"
	// ReasonDigestMismatch: the content doesn't have the digest that the object, or
	// the source itself, says it has.
	ReasonDigestMismatch = "DigestMismatch"
	// ReasonSourceUnavailable: the source could not be asked. Try again, with backoff.
	ReasonSourceUnavailable = "SourceUnavailable"
	// ReasonSourceUnauthorized: the source wants credentials, or other ones.
	ReasonSourceUnauthorized = "SourceUnauthorized"
	// ReasonSignatureMissing: verify wants a signature, and there is none.
	ReasonSignatureMissing = "SignatureMissing"
	// ReasonSignatureInvalid: there are signatures, but none by whom verify wants.
	ReasonSignatureInvalid = "SignatureInvalid"
	// ReasonVerificationPolicyInvalid: verify, or a key that it names, can't be used.
	ReasonVerificationPolicyInvalid = "VerificationPolicyInvalid"
)

// IsReason tells whether a reason is one of an [Error]: it is about where something
// comes from, and not about what becomes of it.
func IsReason(reason string) bool {
	switch reason {
	case ReasonArtifactNotFound, ReasonArtifactInvalid, ReasonArtifactTooLarge, ReasonArtifactRefused, ReasonArtifactChanged,
		ReasonSourceDisabled, ReasonArtifactPending, ReasonDigestMismatch, ReasonSourceUnavailable, ReasonSourceUnauthorized,
		ReasonSignatureMissing, ReasonSignatureInvalid, ReasonVerificationPolicyInvalid:
		return true
	}
	return false
}

// Error says why a chart can't be had. Its text is the same as long as the cause
// is, holds no content of the chart or of a Secret, and names the way out.
type Error struct {
	// Reason is one of the Reason constants.
	Reason string
	// Field of the add-on that the reference is in, as in "chart.path".
	Field string
	// part of the reference's field that it is about, as ".secretRef"; see [Reference.locate].
	part string
	// Subject is the object or path that was looked at.
	Subject string
	// Err is the cause.
	Err error
	// Wait is set when nothing is wrong but something isn't there yet: an event
	// will tell, and a retry before it is of no use.
	Wait bool
	// RetryAfter is when to ask again, as no event will tell. It is set for sources
	// on other hosts: sooner, they aren't asked again, but repeat the error.
	RetryAfter time.Duration
}

// Error is the field, the subject and the cause.
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

// failure makes an Error that doesn't know its reference yet; see [Reference.locate].
func failure(reason, format string, args ...any) *Error {
	return &Error{Reason: reason, Err: fmt.Errorf(format, args...)}
}

// locate says where err is, seen from the object with the reference. An error
// that isn't an [Error] comes from a source that could not be asked.
func (r Reference) locate(err error) error {
	if err == nil {
		return nil
	}
	var known *Error
	if !errors.As(err, &known) {
		known = &Error{Reason: ReasonSourceUnavailable, Err: err}
	}
	located := *known
	if located.Field == "" { // it may be remembered for others, with a field of their own
		located.Field, located.Subject = r.field()+located.part, cmp.Or(located.Subject, r.subject())
	}
	return &located
}
