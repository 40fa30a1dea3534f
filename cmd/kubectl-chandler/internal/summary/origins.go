// SPDX-License-Identifier: Apache-2.0

package summary

import (
	"github.com/cluster-chandler/chandler/internal/deliver/redacted"
	"github.com/cluster-chandler/chandler/internal/render/values"
)

// Origins say where the values of an add-on on a cluster are from.
type Origins struct {
	Values []values.Origin `json:"values"`
	// Unread are the places that couldn't be read.
	Unread []Unread `json:"unread,omitempty"`
}

// Unread is a place that couldn't be read, and why.
type Unread struct {
	From    string `json:"from"`
	Problem string `json:"problem"`
}

// OriginsOf returns where the values of a release are from.
func OriginsOf(release *redacted.Release, layers []values.Layer) *Origins {
	is := &Origins{Values: release.Origins(layers)}
	for _, l := range layers {
		if l.Problem != nil {
			is.Unread = append(is.Unread, Unread{From: l.From, Problem: l.Problem.Error()})
		}
	}
	return is
}
