// SPDX-License-Identifier: Apache-2.0

package job

// Lookup is a call of `lookup` in a template.
type Lookup struct {
	// Name is empty for all objects of the kind, Namespace for all namespaces.
	APIVersion, Kind, Namespace, Name string
}

// LookupAnswer is the answer to one Lookup.
type LookupAnswer struct {
	Lookup
	// Object is a list if Name is empty, and nil if nothing was found.
	Object map[string]any
}
