// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"cmp"
	"context"
	"strings"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/render"
	"github.com/cluster-chandler/chandler/internal/source/reference"
)

// reference says where the add-on's chart, kustomization or manifests are.
func (p *pass) reference(a *addon) reference.Reference {
	return reference.AddonOf(p.ca.Namespace, &a.Addon, a.bundle)
}

// directory of the kustomization or the manifests, "" for the artifact's root.
func (a *addon) directory() string {
	switch {
	case a.Kustomization != nil:
		return a.Kustomization.Directory
	case a.Manifests != nil:
		return a.Manifests.Directory
	}
	return ""
}

// build makes the add-on's objects of its files.
func (p *pass) build(ctx context.Context, in *inputs, files []artifact.File, r deliver.RenderInput) (*render.Result, error) {
	release := render.Release{Name: in.release.Name, Namespace: in.release.Namespace, Revision: r.Revision, Upgrade: r.Upgrade}
	plain := render.FilesRequest{
		Files: files, Directory: in.directory, Release: release, Version: in.filesVersion(), Patches: in.patches,
	}
	switch in.chart.Kind {
	case artifact.KindKustomization:
		return p.Renderer.Kustomization(ctx, plain)
	case artifact.KindManifests:
		if artifact.IsPlain(files) {
			plain.Single = in.chart.Subject()
		}
		return p.Renderer.Manifests(ctx, plain)
	}
	release.Name = cmp.Or(in.templateName, release.Name)
	facts, _, err := p.workload.facts(ctx)
	if err != nil {
		return nil, err
	}
	return p.Renderer.Chart(ctx, render.ChartRequest{
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
