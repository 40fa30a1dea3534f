// SPDX-License-Identifier: Apache-2.0

// Package rendering renders the add-ons of a cluster, and tells whether that is needed.
package rendering

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"k8s.io/utils/ptr"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/inputs"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/releases"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/workload"
	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/fleetwatch"
	"github.com/cluster-chandler/chandler/internal/render"
	"github.com/cluster-chandler/chandler/internal/render/job"
	"github.com/cluster-chandler/chandler/internal/source"
	"github.com/cluster-chandler/chandler/internal/source/unpack"
)

// Renderer renders the add-ons of one cluster, and tells whether that is needed.
type Renderer struct {
	Sources  *source.Sources
	Renderer *render.Renderer
	// Kinds watches for the kinds that charts asked for.
	Kinds    *fleetwatch.Kinds
	Workload workload.Cluster
	Proofs   *releases.Proofs
	Now      time.Time
}

// Render makes the add-on's objects. It is called only when something changed.
func (q Renderer) Render(ctx context.Context, in *inputs.Inputs, r deliver.RenderInput) (*deliver.Rendering, error) {
	if r.Values != nil {
		of := *in
		of.Values, of.Secrets, in = r.Values, job.StringsIn(nil, r.Values), &of
	}
	from, err := q.Sources.Fetch(ctx, in.Chart, in.Artifact)
	if err != nil {
		return nil, inputs.OfAddon(in.Addon, err)
	}
	result, err := q.build(ctx, in, from, r)
	if err != nil {
		return nil, inputs.OfAddon(in.Addon, err)
	}
	factsUsed, err := json.Marshal(result.FactsUsed)
	if err != nil {
		return nil, fmt.Errorf("facts of release %s: %w", in.Name, err)
	}
	return &deliver.Rendering{Result: *result, Digest: in.Digest(result.FactsUsed), FactsUsed: string(factsUsed), Values: in.Values}, nil
}

// build makes the add-on's objects of its files.
func (q Renderer) build(ctx context.Context, in *inputs.Inputs, from *unpack.Artifact, r deliver.RenderInput) (*job.Result, error) {
	release := job.Release{Name: in.Name, Namespace: in.Release().Namespace, Revision: r.Revision, Upgrade: r.Upgrade}
	if in.Chart.Kind != artifact.KindChart {
		plain := job.Files{
			Files: from.Files, Directory: in.Directory(), Release: release, Version: in.FilesVersion(), Edits: in.Edits(),
			Kustomization: in.Chart.Kind == artifact.KindKustomization,
		}
		if artifact.IsPlain(from.Files) {
			plain.Single = in.Chart.Subject()
		}
		return q.Renderer.Files(ctx, plain)
	}
	release.Name = cmp.Or(in.TemplateReleaseName, release.Name)
	facts, _, err := q.Workload.Facts(ctx)
	if err != nil {
		return nil, err
	}
	return q.Renderer.Chart(ctx, job.Chart{
		Files:      from.Files,
		Digest:     from.Digest,
		Release:    release,
		Values:     in.Values,
		Facts:      facts,
		SkipSchema: ptr.Deref(in.SkipSchemaValidation, false),
		Generated:  r.Generated,
		Sensitive:  in.Secrets,
		Edits:      in.Edits(),
		Lookup:     r.Lookup,
		Live:       r.Live,
		RenewLost:  in.GeneratedValuesPolicy == addonsv1.GeneratedValuesPolicyRenew,
	})
}
