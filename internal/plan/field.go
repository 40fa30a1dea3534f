// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"encoding/json"
	"hash/maphash"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/message"
)

// Causes of a field's value.
const (
	ByManifest addonsv1.PlanCause = "Manifest" // the change of the stack
	ByServer   addonsv1.PlanCause = "Server"   // a default, or a webhook
	ByDrift    addonsv1.PlanCause = "Drift"    // somebody edited it: it is set back
)

// Field is a field of an object that gets another value. A value that mustn't be shown is [Hidden].
type Field struct {
	addonsv1.PlanField
	// digest of the new value. It says whether two clusters get the same one, and is never written.
	digest uint64
}

// seed is that of the digests. Nobody knows it.
var seed = maphash.MakeSeed()

// Hidden stands for a value that isn't shown.
const Hidden = "(hidden)"

// maxValue is how many bytes of a value are shown.
const maxValue = 128

// FieldOf returns a field with its values; nil is that of one that isn't there. Secrets are taken out of what is shown. Without
// show, as in a Secret, nothing is.
func FieldOf(path string, cause addonsv1.PlanCause, before, after any, show bool, secrets []string) Field {
	text, _ := json.Marshal(after) // it was read from JSON
	return Field{
		PlanField: addonsv1.PlanField{Path: path, Cause: cause, Old: shown(before, show, secrets), New: shown(after, show, secrets)},
		digest:    maphash.Bytes(seed, text),
	}
}

// shown returns a value as JSON, as much of it as is shown.
func shown(value any, show bool, secrets []string) string {
	if value == nil {
		return ""
	}
	if !show {
		return Hidden
	}
	text, _ := json.Marshal(value) // it was read from JSON
	return message.Shorten(message.Redact(string(text), secrets), maxValue)
}
