// SPDX-License-Identifier: Apache-2.0

package inputs_test

import (
	"testing"

	"github.com/cluster-chandler/chandler/controllers/clusteraddon/inputs"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/wanted"
	"github.com/cluster-chandler/chandler/internal/source"
	"github.com/cluster-chandler/chandler/test/addons"
	"github.com/cluster-chandler/chandler/test/must"
)

// The digest in a record is believed if the record is proven: else somebody could have other content installed by it.
func TestDigestOfAnUnprovenRecordIsNotBelieved(t *testing.T) {
	for _, isProven := range []bool{true, false} {
		sources, err := source.New(source.Options{})
		must.Succeed(t, err)
		a, record := addons.InRegistry(t, sources, "web", func(*wanted.Addon) {})
		q := inputs.Reader{Sources: sources, Proofs: addons.Proofs()}
		if isProven {
			q.Proofs = addons.Proofs(record)
		}
		in := &inputs.Inputs{Addon: &a, Chart: a.Reference("team")}
		err = q.Resolve(t.Context(), in, record)
		if believed := err == nil && in.Artifact == record.Artifact; believed != isProven {
			t.Errorf("proven %t: digest %q, %v", isProven, in.Artifact, err)
		}
	}
}
