// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"context"

	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/source/reference"
)

// inputs is all that an installation is made of, but for the facts of the
// cluster that the chart asks about.
type inputs struct {
	*addon
	chart    reference.Reference
	artifact string // digest
	version  string // of the object that the artifact is in, or its address elsewhere; "" of a path
	values   map[string]any
	secrets  []string // must not appear in a message
}

// inputs resolves the chart and the values of an add-on. What did not change
// since the last time costs no request.
func (q *request) inputs(ctx context.Context, a *addon, record deliver.Summary) (*inputs, error) {
	in := &inputs{addon: a, chart: q.reference(a)}
	if err := q.resolve(ctx, in, record); err != nil {
		return nil, err
	}
	var err error
	if in.values, in.secrets, err = q.values(ctx, a); err != nil {
		return nil, err
	}
	return in, nil
}

// resolve finds the chart's digest. After a restart the record tells it, if the
// chart is in an object that is the same as then, or is the same version of a
// registry or repository: so a source is asked only about what is new. (The record is trusted in this
// for its own cluster alone: nothing of it is remembered for others.) If that was refused,
// it may have been published anew; what is installed as it is wanted is left alone.
func (q *request) resolve(ctx context.Context, in *inputs, record deliver.Summary) (err error) {
	in.version = q.Sources.Version(ctx, in.chart)
	if in.version != "" && in.version == record.ArtifactVersion && record.Artifact != "" {
		in.artifact = record.Artifact
		if !installedAsWanted(in.addon, record) {
			in.artifact = q.Sources.Current(ctx, in.chart, in.artifact)
		}
		return nil
	}
	if in.artifact, err = q.Sources.Resolve(ctx, in.chart); err != nil {
		return ofAddon(in.addon, err)
	}
	if q.Sources.Version(ctx, in.chart) != in.version {
		in.version = "" // it changed meanwhile, and the digest may be of either
	}
	return nil
}
