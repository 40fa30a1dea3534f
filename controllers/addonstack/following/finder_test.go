// SPDX-License-Identifier: Apache-2.0

package following_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/addonstack/following"
	"github.com/cluster-chandler/chandler/controllers/addonstack/report"
	"github.com/cluster-chandler/chandler/fleet/budget"
	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/artifact/opener"
	"github.com/cluster-chandler/chandler/internal/render"
	"github.com/cluster-chandler/chandler/internal/source"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/registry"
	"github.com/cluster-chandler/chandler/test/stacks"
	"github.com/cluster-chandler/chandler/test/targz"
	"github.com/cluster-chandler/chandler/test/wait"
)

// busyMachine gives workers no time for a while, each time that one is to do something.
type busyMachine struct{ opener.Opener }

func (m busyMachine) Open(ctx context.Context, job *opener.Job) (*opener.Opened, error) {
	select {
	case <-time.After(300 * time.Millisecond):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return m.Opener.Open(ctx, job)
}

// However slow the machine is, a stack gets to the release that it follows.
func TestPollEndsOnABusyMachine(t *testing.T) {
	server := registry.Start(t, registry.Options{PlainHTTP: true})
	chart := targz.Of(t, targz.Entry{Name: "cluster-addon/Chart.yaml", Data: "apiVersion: v2\nname: cluster-addon\nversion: 1.0.0\n"})
	server.PushRelease(t, map[string][]byte{
		"metadata.yaml":                        []byte("versions: {clusterStack: v1, kubernetes: v1.31.6, components: {clusterAddon: v1}}\n"),
		"docker-scs-1-31-cluster-addon-v1.tgz": chart,
		"cluster-addon-values.yaml":            []byte("values: |\n  a: 1\n"),
	}, "stacks", "docker-scs-1-31-v1")
	renderer := render.New(render.Options{Workers: 1})
	t.Cleanup(renderer.Close)
	sources, err := source.New(source.Options{Opener: busyMachine{renderer}, AllowLoopback: true})
	must.Succeed(t, err)
	r := following.Finder{Bundles: following.Bundles{Sources: sources, Events: report.Events{Recorder: events.NewFakeRecorder(100)}}, Clock: clock.RealClock{}}
	poll := &following.Poll{}
	ctx := sources.Waiting(budget.WithTenant(t.Context(), budget.Tenant{Namespace: "team"}), "AddonStack team/platform", func() {})
	s := &addonsv1.AddonStack{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "platform", UID: "1", Generation: 1}}
	s.Spec.Source = &addonsv1.BundleSource{ClusterStack: "docker-scs-1-31", ArtifactSource: addonsv1.ArtifactSource{
		OCI: &addonsv1.OCISource{URL: server.URL("stacks"), PlainHTTP: ptr.To(true)},
	}}
	for reconciles := 1; ; reconciles++ {
		f, err := r.Follow(ctx, s, poll, "", nil)
		switch {
		case err != nil:
			t.Fatal(err)
		case f.HasFailed():
			t.Fatal(stacks.SourcesReady(f))
		case f.Followed[0].Pin.Version == "docker-scs-1-31-v1":
			return
		case reconciles == 10:
			t.Fatalf("after %d reconciles it waits: %v", reconciles, stacks.SourcesReady(f))
		}
		time.Sleep(500 * time.Millisecond) // the end of a request wakes the stack
	}
}

// openerOf opens for one tenant, and counts what it is to open for others.
type openerOf struct {
	opener.Opener
	tenant budget.Tenant
	own    atomic.Int32
	others atomic.Int32
}

func (o *openerOf) Open(ctx context.Context, job *opener.Job) (*opener.Opened, error) {
	if budget.TenantOf(ctx) == o.tenant {
		o.own.Add(1)
	} else {
		o.others.Add(1)
	}
	return o.Opener.Open(ctx, job)
}

// Bundles are opened in the share of their stack's namespace.
func TestBundlesAreOpenedForTheirNamespace(t *testing.T) {
	_, s, root := bundled(t)
	renderer := render.New(render.Options{Workers: 1})
	t.Cleanup(renderer.Close)
	counting := &openerOf{Opener: renderer, tenant: budget.Tenant{Namespace: s.Namespace}}
	sources, err := source.New(source.Options{Opener: counting, ArtifactRoot: root})
	must.Succeed(t, err)
	r := following.Bundles{Sources: sources, Events: report.Events{Recorder: events.NewFakeRecorder(100)}}
	ctx := sources.Waiting(budget.WithTenant(t.Context(), counting.tenant), "AddonStack team/platform", func() {})
	wait.Until(t, time.Minute, "it is opened", func() error { // a busy machine takes longer than a reconcile waits
		_, err := r.Expand(ctx, s, nil, nil)
		return err
	})
	if counting.own.Load() == 0 || counting.others.Load() > 0 {
		t.Errorf("%d were opened for the namespace, %d for others", counting.own.Load(), counting.others.Load())
	}
}

// openerBeside notes how much is claimed while it reads what a bundle says.
type openerBeside struct {
	opener.Opener
	memory *budget.Budget
	least  atomic.Int64 // bytes
}

func (o *openerBeside) Open(ctx context.Context, job *opener.Job) (*opener.Opened, error) {
	if job.YAML != nil {
		o.least.Store(o.memory.Usage().Claimed)
	}
	return o.Opener.Open(ctx, job)
}

// A bundle's files count until the stack's add-ons are made of them, and no longer.
func TestBundlesCountUntilTheyAreExpanded(t *testing.T) {
	const most = 8 << 20
	_, s, root := bundled(t)
	renderer := render.New(render.Options{Workers: 1})
	t.Cleanup(renderer.Close)
	memory := budget.New(budget.Limits{})
	beside := &openerBeside{Opener: renderer, memory: memory}
	sources, err := source.New(source.Options{Opener: beside, ArtifactRoot: root, Memory: memory, Limits: artifact.Limits{TotalBytes: most}})
	must.Succeed(t, err)
	r := following.Bundles{Sources: sources, Events: report.Events{Recorder: events.NewFakeRecorder(100)}}
	_, err = r.Expand(t.Context(), s, nil, nil)
	must.Succeed(t, err)
	if claimed := beside.least.Load(); claimed < most {
		t.Errorf("%d bytes are claimed while a bundle is read that may have %d", claimed, most)
	}
	if usage := memory.Usage(); usage.Claimed != 0 {
		t.Errorf("in the end %+v is held", usage)
	}
}
