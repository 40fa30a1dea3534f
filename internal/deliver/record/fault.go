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
	// TooLarge: the record doesn't fit in the cluster, or couldn't be read again.
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

// IsDamaged reports whether an error says that a record is damaged.
func IsDamaged(err error) bool {
	fault, ok := errors.AsType[*Fault](err)
	return ok && fault.Kind == Damaged
}

func unwritten(secret client.Object, err error) *Fault {
	return &Fault{Kind: Unwritten, Secret: secret.GetNamespace() + "/" + secret.GetName(), Err: err}
}

func tooLarge(bytes, limit int) *Fault {
	return &Fault{Kind: TooLarge, Err: fmt.Errorf("takes %d bytes when compressed, more than the %d that may be stored", bytes, limit)}
}
