// SPDX-License-Identifier: Apache-2.0

package failure

// Reasons of an [Error] of a source. They are stable: conditions, events and metrics carry them.
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
	// ArtifactPending: it takes longer than usual to get the chart; that continues.
	ArtifactPending = "ArtifactPending"
	// DigestMismatch: the content doesn't have the digest that the object, or
	// the source itself, says it has.
	DigestMismatch = "DigestMismatch"
	// SourceUnavailable: the source could not be asked. Try again, with backoff.
	SourceUnavailable = "SourceUnavailable"
	// SourceUntrusted: the source's certificate isn't valid, or is of an authority that isn't known.
	SourceUntrusted = "SourceUntrusted"
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
	SourceDisabled: false, ArtifactPending: false, SourceUnavailable: false, SourceUntrusted: false, SourceUnauthorized: false, VerificationPolicyInvalid: false,
}

// IsReason reports whether a reason is one of a source: it is about where something
// comes from, and not about its use.
func IsReason(reason string) bool {
	_, is := ofContent[reason]
	return is
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
const IfFollowed = "If the stack follows a range, the version was published again, or removed, since it was taken: publish a newer one, or narrow the range"

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

// NoMemory returns the error of a request of a namespace that others left no memory for.
func NoMemory(namespace string) *Error {
	return New(SourceUnavailable, "others of namespace %s take all memory that it may have; it is asked again", namespace)
}
