// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/deliver/preview"
	"github.com/cluster-chandler/chandler/internal/plan"
	"github.com/cluster-chandler/chandler/internal/render"
	"github.com/cluster-chandler/chandler/internal/render/job"
	"github.com/cluster-chandler/chandler/internal/source"
	"github.com/cluster-chandler/chandler/internal/source/reference"
)

// foresight renders releases as the manager will.
type foresight struct {
	namespace string
	renew     bool
	sources   *source.Sources
	renderer  *render.Renderer
	connect   func(ctx context.Context, cluster string) (*rest.Config, error)
	scheme    *runtime.Scheme
	known     map[string]*cluster
}

// cluster is a workload cluster, which is asked for its APIs once.
type cluster struct {
	client client.Client
	facts  job.Facts
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
	by := &foresight{
		namespace: f.Namespace, renew: f.Renew, sources: sources, renderer: renderer, connect: f.Config, scheme: f.Client.Scheme(), known: map[string]*cluster{},
	}
	for _, r := range f.Releases {
		if at := r.Addon.Chart; r.Addon.AdoptionPolicy == "" || at.OCI == nil && at.Helm == nil && at.Path == "" {
			continue // it has a problem
		}
		files, err := by.chartOf(ctx, r)
		if err != nil {
			f.note("%s: whether it can be taken over, and which pods restart, isn't known, as its chart can't be read from here: %v", r, err)
			continue
		}
		is, err := by.tryOut(ctx, r, files)
		if err != nil {
			return fmt.Errorf("%s: %w", r, err)
		}
		f.tell(r, is)
	}
	return nil
}

// tell adds problems and notes on what becomes of a release.
func (f *Found) tell(r *Release, is plan.Addon) {
	if is.Reason == job.ReasonGeneratedValuesLost {
		is.Message += ", or with --generated-values renew"
	}
	if is.Reason != "" {
		f.problem("%s: %s: %s", r, is.Reason, is.Message)
	}
	for _, c := range is.Changes {
		switch {
		case c.Action == plan.Refuse:
			f.problem("%s: %s: %s", r, c.Reason, c.Message)
		case c.Restarts && is.State != plan.Refused:
			f.note("%s: the pods of %s restart", r, c.Object)
		}
	}
}

// chartOf returns the files of a release's chart.
func (by *foresight) chartOf(ctx context.Context, r *Release) ([]artifact.File, error) {
	ref := reference.Reference{Namespace: by.namespace, Chart: r.Addon.Chart}
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

// tryOut returns what becomes of a release.
func (by *foresight) tryOut(ctx context.Context, r *Release, files []artifact.File) (plan.Addon, error) {
	at, err := by.cluster(ctx, r.Cluster)
	if err != nil {
		return plan.Addon{}, err
	}
	want := deliver.Desired{
		Release: deliver.Release{Namespace: r.Addon.Namespace, Name: r.Addon.Name}, Adoption: r.Addon.AdoptionPolicy, CRDPolicy: r.Addon.CRDPolicy,
		ProgressDeadline: addonsv1.DefaultProgressDeadlineSeconds * time.Second,
		Digest:           func(context.Context, string) (string, error) { return "", nil },
		Render: func(ctx context.Context, in deliver.RenderInput) (*deliver.Rendering, error) {
			result, err := by.renderer.Chart(ctx, job.Chart{
				Files: files, Values: r.Values, Facts: at.facts, Generated: in.Generated, Lookup: in.Lookup, Live: in.Live,
				Release:   job.Release{Name: r.Addon.Name, Namespace: r.Addon.Namespace, Revision: in.Revision, Upgrade: in.Upgrade},
				RenewLost: by.renew,
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
	return deliver.New(deliver.Options{}).Preview(ctx, deliver.Target{Name: r.Cluster, Client: at.client, Context: ctx}, want, nil, preview.NewComing())
}

// cluster connects to a workload cluster.
func (by *foresight) cluster(ctx context.Context, name string) (*cluster, error) {
	if at := by.known[name]; at != nil {
		return at, nil
	}
	config, err := by.connect(ctx, name)
	if err != nil {
		return nil, err
	}
	at := &cluster{}
	if at.facts, err = factsOf(config); err != nil {
		return nil, fmt.Errorf("asking for its APIs: %w", err)
	}
	if at.client, err = client.New(config, client.Options{Scheme: by.scheme}); err != nil {
		return nil, err
	}
	by.known[name] = at
	return at, nil
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
