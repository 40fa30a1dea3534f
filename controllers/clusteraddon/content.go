// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"cmp"
	"context"
	"strings"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/render"
)

// build makes the add-on's objects of its files.
func (q *request) build(ctx context.Context, in *inputs, files []artifact.File, r deliver.RenderInput) (*render.Result, error) {
	release := render.Release{Name: in.release.Name, Namespace: in.release.Namespace, Revision: r.Revision, Upgrade: r.Upgrade}
	plain := render.FilesRequest{
		Files: files, Directory: in.directory, Release: release, Version: in.filesVersion(), Patches: in.patches,
	}
	switch in.chart.Kind {
	case artifact.KindKustomization:
		return q.Renderer.Kustomization(ctx, plain)
	case artifact.KindManifests:
		if artifact.IsPlain(files) {
			plain.Single = in.chart.Subject()
		}
		return q.Renderer.Manifests(ctx, plain)
	}
	release.Name = cmp.Or(in.templateName, release.Name)
	facts, _, err := q.workload.facts(ctx)
	if err != nil {
		return nil, err
	}
	return q.Renderer.Chart(ctx, render.ChartRequest{
		Files:      files,
		Release:    release,
		Values:     in.values,
		Facts:      facts,
		SkipSchema: in.skipSchema,
		Generated:  r.Generated,
		Sensitive:  in.secrets,
		Patches:    in.patches,
		Lookup:     r.Lookup,
		Live:       r.Live,
	})
}

// filesVersion is the version that is shown of what isn't a chart, and has none of
// its own: the tag in the registry, or else the start of the artifact's digest.
func (in *inputs) filesVersion() string {
	const shown = len("sha256:") + 12
	return cmp.Or(in.chart.Chart.Version, strings.Replace(in.artifact[:min(shown, len(in.artifact))], ":", "-", 1))
}
