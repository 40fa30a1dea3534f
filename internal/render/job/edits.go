// SPDX-License-Identifier: Apache-2.0

package job

import addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"

// Edits change the objects that were made of a chart or of files. They are fields of an add-on, and in the digest of its inputs: a
// field that isn't set has to be left out of JSON.
type Edits struct {
	// Patches are applied to all objects, in their order: those of templates or files, hooks and CRDs.
	Patches []addonsv1.Patch `json:",omitempty"`
}

// AreNone reports whether nothing is changed.
func (e *Edits) AreNone() bool { return len(e.Patches) == 0 }
