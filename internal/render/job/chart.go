// SPDX-License-Identifier: Apache-2.0

package job

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/cluster-chandler/chandler/internal/artifact"
)

// Release is .Release of a chart.
type Release struct {
	Name      string
	Namespace string
	Revision  int
	// Upgrade is .Release.IsUpgrade; .Release.IsInstall is its opposite.
	Upgrade bool
}

// Chart is the rendering of a chart.
type Chart struct {
	Files []artifact.File
	// Digest identifies the files. The renderer remembers by it which lookups the chart makes, and shares answers to equal requests.
	// "": the files are hashed for that, and no lookups are remembered.
	Digest  string `cbor:"-"`
	Release Release
	// Values are the user's, of the types that JSON is decoded into; the chart's own defaults are
	// coalesced below them, as Helm does.
	Values map[string]any
	// SkipSchema leaves out the check of the values against the schemas of the chart.
	SkipSchema bool
	Facts      Facts
	// Generated are the values an earlier rendering generated; they are used again.
	Generated Generated
	// Sensitive are strings that must not appear in the text of an error, such as the values
	// read from Secrets. Shorter ones than 4 bytes are ignored.
	Sensitive []string
	Edits

	// Lookup answers the calls of `lookup` in templates; nil: nothing is found. It is called
	// only if they ask for something.
	Lookup func(ctx context.Context, asked []Lookup) ([]LookupAnswer, error) `cbor:"-"`
	// Answers are the results of Lookup so far.
	Answers []LookupAnswer
	// Live reads the objects of the Helm release that is taken over; nil if none is. It is
	// called only if the chart generates something.
	Live func(ctx context.Context) ([]*unstructured.Unstructured, error) `cbor:"-"`
	// LiveObjects are the result of Live.
	LiveObjects []*unstructured.Unstructured
	// RenewLost makes values again that can't be read from the live objects. Else these are an error.
	RenewLost bool
}
