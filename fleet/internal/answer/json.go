// SPDX-License-Identifier: Apache-2.0

package answer

import "github.com/cluster-chandler/chandler/fleet/jsonsize"

// jsonSize is the size of one JSON value in a stream of them. The decoder keeps
// all bytes until the value ends.
type jsonSize struct{ jsonsize.Counter }

// add returns the size of the largest value that the data have a part of.
func (j *jsonSize) add(data []byte, _ bool) (largest int) {
	for len(data) > 0 {
		var ended bool
		data, ended = j.Read(data)
		largest = max(largest, j.Size())
		if ended {
			*j = jsonSize{}
		}
	}
	return largest
}

func (j *jsonSize) pending() int { return j.Size() }
