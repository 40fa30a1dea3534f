// SPDX-License-Identifier: Apache-2.0

// Package limits says how much an API server may answer, and which error a larger answer ends with.
package limits

import "cmp"

// Limits of the answers of one API server, after unpacking. A field that is 0 has its default. A field
// below 0 means that there is no limit. Small values count as more than their text, as they take more memory than that.
type Limits struct {
	// Object is how many bytes an object, an event of a watch, or a discovery document may have.
	// Defaults to 4 MiB: an object has at most 1.5 MiB in etcd, and the discovery document of a
	// cluster with 2,000 CRDs about 2 MiB.
	Object int64
	// List is how many bytes a list may have, with all of its pages. Defaults to 32 MiB. An ordinary
	// controller caches whole objects: 5,000 Pods of 8 KiB are 40 MiB.
	List int64
	// WatchRate is how many bytes a watch may send in a second. It may save up List of them, for the
	// objects that a watch begins with. Defaults to 64 KiB.
	WatchRate int64
	// Kinds is how many kinds a cluster may have, each counted in each of its versions. Defaults to 5,000. Documents is how many
	// bytes a server may say about them, in all. Defaults to 2 MiB, which are about 4,000 kinds with long names.
	Kinds, Documents int64
}

// None are no limits at all, for a server that is trusted.
var None = Limits{Object: -1, List: -1, WatchRate: -1, Kinds: -1, Documents: -1}

// Defaulted returns the limits with every zero field set.
func (l Limits) Defaulted() Limits {
	return Limits{
		Object:    cmp.Or(l.Object, 4<<20),
		List:      cmp.Or(l.List, 32<<20),
		WatchRate: cmp.Or(l.WatchRate, 64<<10),
		Kinds:     cmp.Or(l.Kinds, 5000),
		Documents: cmp.Or(l.Documents, 2<<20),
	}
}

// Reasons of an Error.
const (
	// ResponseTooLarge: the server answered with more than the limits allow.
	ResponseTooLarge = "ResponseTooLarge"
	// TooManyKinds: the server says that it has more kinds, or API versions, than are read.
	TooManyKinds = "TooManyKinds"
	// WaitingForMemory: there was no room in Options.Memory for the answer. It passes by itself.
	WaitingForMemory = "WaitingForMemory"
)

// Error says that an API server answered with more than is accepted.
type Error struct {
	// Reason is ResponseTooLarge, TooManyKinds or WaitingForMemory.
	Reason string
	// Message names the request and the limit, or who has all memory.
	Message string
	// Discovery says that it was a question about the kinds of the cluster, without
	// which nothing else can be asked.
	Discovery bool
}

// Error implements error.
func (e *Error) Error() string { return e.Message }
