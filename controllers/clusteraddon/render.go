// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/releases"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/wanted"
	"github.com/cluster-chandler/chandler/fleet/budget"
	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/render/job"
)

// rendering renders add-ons, and tells whether that is needed.
type rendering struct{ *clusterRun }

// render makes the add-on's objects. It is called only when something changed.
func (q rendering) render(ctx context.Context, in *inputs, r deliver.RenderInput) (*deliver.Rendering, error) {
	artifact, err := q.Sources.Fetch(ctx, in.chart, in.artifact)
	if err != nil {
		return nil, ofAddon(in.Addon, err)
	}
	result, err := q.build(ctx, in, artifact.Files, r)
	if err != nil {
		return nil, ofAddon(in.Addon, err)
	}
	factsUsed, err := json.Marshal(result.FactsUsed)
	if err != nil {
		return nil, fmt.Errorf("facts of release %s: %w", in.Name, err)
	}
	return &deliver.Rendering{Result: *result, Digest: in.digest(result.FactsUsed), FactsUsed: string(factsUsed), Values: in.values}, nil
}

// build makes the add-on's objects of its files.
func (q rendering) build(ctx context.Context, in *inputs, files []artifact.File, r deliver.RenderInput) (*job.Result, error) {
	release := job.Release{Name: in.Name, Namespace: in.Release().Namespace, Revision: r.Revision, Upgrade: r.Upgrade}
	if in.chart.Kind != artifact.KindChart {
		plain := job.Files{
			Files: files, Directory: in.Directory(), Release: release, Version: in.filesVersion(), Patches: in.Patches,
			Kustomization: in.chart.Kind == artifact.KindKustomization,
		}
		if artifact.IsPlain(files) {
			plain.Single = in.chart.Subject()
		}
		return q.Renderer.Files(ctx, plain)
	}
	release.Name = cmp.Or(in.TemplateReleaseName, release.Name)
	facts, _, err := q.workload.Facts(ctx)
	if err != nil {
		return nil, err
	}
	return q.Renderer.Chart(ctx, job.Chart{
		Files:      files,
		Release:    release,
		Values:     in.values,
		Facts:      facts,
		SkipSchema: ptr.Deref(in.SkipSchemaValidation, false),
		Generated:  r.Generated,
		Sensitive:  in.secrets,
		Patches:    in.Patches,
		Lookup:     r.Lookup,
		Live:       r.Live,
		RenewLost:  in.GeneratedValuesPolicy == addonsv1.GeneratedValuesPolicyRenew,
	})
}

// filesVersion returns the version that is shown of what isn't a chart, and has none of
// its own. It is the tag in the registry, or else the start of the artifact's digest.
func (in *inputs) filesVersion() string {
	const shown = len("sha256:") + 12
	return cmp.Or(in.chart.Chart.Version, strings.Replace(in.artifact[:min(shown, len(in.artifact))], ":", "-", 1))
}

// rememberedContents bounds the contents of add-ons that are remembered, in bytes.
const rememberedContents = 8 << 20

// sizeOf returns about how many bytes the contents of an add-on take.
func sizeOf(contents sets.Set[deliver.ObjectKey]) (bytes int64) {
	for key := range contents {
		bytes += int64(96 + len(key.Group) + len(key.Kind) + len(key.Namespace) + len(key.Name))
	}
	return bytes
}

// contentsOf returns the objects that an add-on is to have, nil if that isn't known now.
func (q rendering) contentsOf(ctx context.Context, a *wanted.Addon) sets.Set[deliver.ObjectKey] {
	if a.Incompatible != "" {
		return nil // which version of the chart it will be isn't known
	}
	record := q.installed[a.Release()]
	in, err := inputReader(q).inputs(ctx, a, record)
	if err != nil {
		return nil // as its status says
	}
	name := q.keyOf(q.ca.Name).String() + " " + in.digest(job.FactsUsed{})
	if has, known := q.contents.Get(name); known {
		return has
	}
	rendering, err := q.render(ctx, in, deliver.RenderInput{Revision: record.Revision + 1, Upgrade: record.Installed})
	if err != nil {
		return nil
	}
	keys, err := q.Deliverer.Keys(q.workload.Target(), a.Release(), rendering)
	if err != nil {
		return nil
	}
	has := sets.New(keys...)
	q.contents.Put(budget.TenantOf(ctx), name, has)
	return has
}

// mayBringKinds reports whether a change of an add-on may bring API kinds to the cluster, or take
// some away. The kinds of its objects tell. An operator may bring others, so dependents count, too.
func (q rendering) mayBringKinds(a *wanted.Addon, before, after string) bool {
	for kind := range strings.SplitSeq(before+","+after, ",") {
		if strings.HasSuffix(kind, "/CustomResourceDefinition") || strings.HasSuffix(kind, "/APIService") {
			return true
		}
	}
	return slices.ContainsFunc(q.wanted, func(other wanted.Addon) bool { return releases.DependsOn(other.Stack, other.DependsOn, a.Qualified()) })
}
