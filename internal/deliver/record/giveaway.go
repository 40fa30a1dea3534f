// SPDX-License-Identifier: Apache-2.0

package record

// digestGivenAway in place of a record's digest: no inputs have it.
const digestGivenAway = "given-away"

// GiveAway notes that something of the release belongs to another one now. So the record
// isn't of any inputs any more, and no object is known to be the release's.
func (r *Record) GiveAway() {
	r.Digest, r.Spec = digestGivenAway, ""
	for i := range r.State.Inventory {
		r.State.Inventory[i].UID = ""
	}
}

// GivenAway says that the record doesn't say any more what is installed: see
// [Record.GiveAway].
func (s Summary) GivenAway() bool { return s.Digest == digestGivenAway }
