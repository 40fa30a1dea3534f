// SPDX-License-Identifier: Apache-2.0

package record

import (
	"errors"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// FaultKind says what may help against a [Fault].
type FaultKind int

const (
	// Damaged: the record can't be read, and no other try would help.
	Damaged FaultKind = iota
	// InParts: the rest of the record is in other Secrets, where an earlier version of Chandler left it.
	InParts
	// TooLarge: the record doesn't fit in a Secret, or couldn't be read again.
	TooLarge
	// Unwritten: the API server didn't write or delete the Secret. Err is its answer.
	Unwritten
	// Unanswered: the answer to a write isn't one of an API server.
	Unanswered
)

// Fault says why a record can't be read or written.
type Fault struct {
	Kind   FaultKind
	Secret string // "namespace/name", "" for one that isn't made yet
	Err    error
}

// Error names the Secret and the cause.
func (f *Fault) Error() string {
	switch f.Kind {
	case InParts:
		return fmt.Sprintf("Secret %s, the release record, has only a part of it: an earlier version of Chandler left the rest in other Secrets, "+
			"which this version doesn't read", f.Secret)
	case TooLarge:
		return fmt.Sprintf("the release record %v", f.Err)
	case Unwritten:
		return fmt.Sprintf("writing Secret %s of a release record: %v", f.Secret, f.Err)
	case Unanswered:
		return fmt.Sprintf("the answer to the write of Secret %s isn't that Secret, or has no metadata.uid", f.Secret)
	default:
		return fmt.Sprintf("Secret %s, the release record, is damaged: %v", f.Secret, f.Err)
	}
}

// Unwrap returns the cause.
func (f *Fault) Unwrap() error { return f.Err }

// ErrChanged says that others have changed a record.
var ErrChanged = errors.New("it isn't as it was written")

// IsUnreadable reports whether an error says that a record can't be read.
func IsUnreadable(err error) bool {
	fault, ok := errors.AsType[*Fault](err)
	return ok && (fault.Kind == Damaged || fault.Kind == InParts)
}

func unwritten(secret client.Object, err error) *Fault {
	return &Fault{Kind: Unwritten, Secret: secret.GetNamespace() + "/" + secret.GetName(), Err: err}
}
