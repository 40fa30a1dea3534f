// SPDX-License-Identifier: Apache-2.0

// Package drift tells from the managedFields of an object whether it still is as an add-on
// applied it, who changed it, and what of that is to be set right.
//
// The API server takes a field out of the entry of its manager when somebody else changes
// or removes that field. So it is enough to compare that one entry: what others own, a
// status say, never looks like drift.
package drift

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Fields is a hash of the fields of an object that a manager has applied and still owns;
// zero if it owns none.
type Fields uint64

// FieldsOf returns the hash of the fields that a manager owns by server-side apply.
func FieldsOf(managed []metav1.ManagedFieldsEntry, manager string) Fields {
	set := setOf(managed, manager)
	text, err := set.ToJSON() // the order of what the server sends depends on the encoding
	if err != nil || set.Empty() {
		return 0
	}
	sum := sha256.Sum256(text)
	return Fields(binary.BigEndian.Uint64(sum[:]))
}

// MarshalText implements encoding.TextMarshaler: 16 hex digits.
func (f Fields) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "%016x", uint64(f)), nil }

// UnmarshalText implements encoding.TextUnmarshaler. A text that it can't read is zero: not known.
func (f *Fields) UnmarshalText(text []byte) error {
	n, _ := strconv.ParseUint(string(text), 16, 64)
	*f = Fields(n)
	return nil
}

// setOf returns the fields that a manager owns by server-side apply.
func setOf(managed []metav1.ManagedFieldsEntry, manager string) *fieldpath.Set {
	for _, e := range managed {
		if isApplied(e, manager) {
			return parse(e.FieldsV1)
		}
	}
	return fieldpath.NewSet()
}

func isApplied(e metav1.ManagedFieldsEntry, manager string) bool {
	return e.Manager == manager && e.Operation == metav1.ManagedFieldsOperationApply && e.Subresource == ""
}

// parse returns an empty set if there is nothing that can be read.
func parse(fields *metav1.FieldsV1) *fieldpath.Set {
	set := fieldpath.NewSet()
	if fields == nil || set.FromJSON(fields.GetRawReader()) != nil {
		return fieldpath.NewSet()
	}
	return set
}

// Sum is that of all objects of one kind, in any order. Objects are added and taken away
// one by one.
type Sum uint64

// Add takes an object in.
func (s *Sum) Add(key types.NamespacedName, f Fields) { *s += term(key, f) }

// Remove takes an object out.
func (s *Sum) Remove(key types.NamespacedName, f Fields) { *s -= term(key, f) }

// term returns what an object adds to a sum; zero if the manager owns nothing of it.
func term(key types.NamespacedName, f Fields) Sum {
	if f == 0 {
		return 0
	}
	text := binary.BigEndian.AppendUint64([]byte(key.Namespace+"\x00"+key.Name+"\x00"), uint64(f))
	sum := sha256.Sum256(text)
	return Sum(binary.BigEndian.Uint64(sum[:]))
}

// Sums are those of an add-on's objects, by kind.
type Sums map[schema.GroupKind]Sum

// none stands for no sums: a record of an older version says nothing.
const none = "none"

// String returns a text as in "Deployment.apps=00d1…,Service=97a2…", sorted: what a record says.
func (s Sums) String() string {
	if len(s) == 0 {
		return none
	}
	parts := make([]string, 0, len(s))
	for kind, sum := range s {
		parts = append(parts, fmt.Sprintf("%s=%016x", kind, uint64(sum)))
	}
	slices.Sort(parts)
	return strings.Join(parts, ",")
}

// ParseSums reads the text that String returns, of at most as many kinds as the limit. A part that
// isn't a sum is left out. It returns the first kind that is left out because of the limit, too;
// empty if none is.
func ParseSums(text string, limit int) (sums Sums, rest schema.GroupKind) {
	sums = Sums{}
	for part := range strings.SplitSeq(text, ",") {
		name, number, found := strings.Cut(part, "=")
		n, err := strconv.ParseUint(number, 16, 64)
		if !found || err != nil {
			continue
		}
		kind := schema.ParseGroupKind(name)
		if _, known := sums[kind]; !known && len(sums) >= limit {
			return sums, kind
		}
		sums[kind] = Sum(n)
	}
	return sums, schema.GroupKind{}
}
