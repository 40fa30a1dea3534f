// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/render"
	"github.com/cluster-chandler/chandler/internal/render/job"
	"github.com/cluster-chandler/chandler/internal/source"
	"github.com/cluster-chandler/chandler/internal/source/reference"
)

// foresight renders releases as the manager will.
type foresight struct {
	*World
	sources  *source.Sources
	renderer *render.Renderer
}

// Foresee adds a problem for each release that Chandler would refuse, and a note for each workload whose pods restart. A chart
// that only Chandler can get is noted.
func (f *Found) Foresee(ctx context.Context) error {
	renderer := render.New(render.Options{Timeout: time.Minute})
	defer renderer.Close()
	sources, err := source.New(source.Options{Opener: renderer, Client: f.Client, AllowLoopback: true})
	if err != nil {
		return err
	}
	by := &foresight{f.World, sources, renderer}
	for _, r := range f.Releases {
		if at := r.Addon.Chart; r.Addon.AdoptionPolicy == "" || at.OCI == nil && at.Helm == nil && at.Path == "" {
			continue // it has a problem
		}
		files, err := by.chartOf(ctx, r)
		if err != nil {
			f.note("%s: whether it can be taken over, and which pods restart, isn't known, as its chart can't be read from here: %v", r, err)
			continue
		}
		restarted, stopped, err := by.tryOut(ctx, r, files)
		if err != nil {
			return fmt.Errorf("%s: %w", r, err)
		}
		if stopped.Reason == job.ReasonGeneratedValuesLost {
			stopped.Message += ", or with --generated-values renew"
		}
		if stopped.Phase != "" {
			f.problem("%s: %s: %s", r, stopped.Reason, stopped.Message)
		}
		for _, workload := range restarted {
			f.note("%s: the pods of %s restart", r, workload)
		}
	}
	return nil
}

// chartOf returns the files of a release's chart.
func (by *foresight) chartOf(ctx context.Context, r *Release) ([]artifact.File, error) {
	ref := reference.Reference{Namespace: by.Namespace, Chart: r.Addon.Chart}
	digest, err := by.sources.Resolve(ctx, ref)
	if err != nil {
		return nil, err
	}
	is, err := by.sources.Fetch(ctx, ref, digest)
	if err != nil {
		return nil, err
	}
	return is.Files, nil
}

// tryOut returns what becomes of a release: see [deliver.Deliverer.Foresee].
func (by *foresight) tryOut(ctx context.Context, r *Release, files []artifact.File) ([]deliver.ObjectKey, deliver.Outcome, error) {
	config, err := by.Config(ctx, r.Cluster)
	if err != nil {
		return nil, deliver.Outcome{}, err
	}
	facts, err := factsOf(config)
	if err != nil {
		return nil, deliver.Outcome{}, fmt.Errorf("asking for its APIs: %w", err)
	}
	workload, err := by.workload(ctx, r.Cluster)
	if err != nil {
		return nil, deliver.Outcome{}, err
	}
	want := deliver.Desired{
		Release: deliver.Release{Namespace: r.Addon.Namespace, Name: r.Addon.Name}, Adoption: r.Addon.AdoptionPolicy, CRDPolicy: r.Addon.CRDPolicy,
		ProgressDeadline: addonsv1.DefaultProgressDeadlineSeconds * time.Second,
		Render: func(ctx context.Context, in deliver.RenderInput) (*deliver.Rendering, error) {
			result, err := by.renderer.Chart(ctx, job.Chart{
				Files: files, Values: r.Values, Facts: facts, Generated: in.Generated, Lookup: in.Lookup, Live: in.Live,
				Release:   job.Release{Name: r.Addon.Name, Namespace: r.Addon.Namespace, Revision: in.Revision, Upgrade: in.Upgrade},
				RenewLost: by.Renew,
			})
			if err != nil {
				return nil, err
			}
			return &deliver.Rendering{Result: *result, Values: r.Values}, nil
		},
	}
	if r.Addon.AdoptRelease != nil {
		want.AdoptRelease = deliver.Release{Namespace: r.storage, Name: r.Addon.Name}
	}
	return deliver.New(deliver.Options{}).Foresee(ctx, deliver.Target{Name: r.Cluster, Client: workload, Context: ctx}, want)
}

// factsOf returns what charts may ask about a cluster.
func factsOf(config *rest.Config) (facts job.Facts, _ error) {
	c, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return facts, err
	}
	version, err := c.ServerVersion()
	if err != nil {
		return facts, err
	}
	_, lists, err := c.ServerGroupsAndResources()
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		return facts, err
	}
	facts.KubeVersion = version.GitVersion
	for _, list := range lists {
		facts.APIVersions = append(facts.APIVersions, list.GroupVersion)
		for _, resource := range list.APIResources {
			facts.APIVersions = append(facts.APIVersions, list.GroupVersion+"/"+resource.Kind)
		}
	}
	return facts, nil
}
