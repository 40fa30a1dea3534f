// SPDX-License-Identifier: Apache-2.0

package addonstack

import (
	"context"
	"sync/atomic"
	"testing"

	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-chandler/chandler/internal/artifact/opener"
	"github.com/cluster-chandler/chandler/internal/render"
	"github.com/cluster-chandler/chandler/internal/shares"
	"github.com/cluster-chandler/chandler/internal/source"
)

// openerOf opens for one tenant, and counts what it is to open for others.
type openerOf struct {
	opener.Opener
	tenant shares.Tenant
	own    atomic.Int32
	others atomic.Int32
}

func (o *openerOf) Open(ctx context.Context, job *opener.Job) (*opener.Opened, error) {
	if shares.TenantOf(ctx) == o.tenant {
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
	counting := &openerOf{Opener: renderer, tenant: shares.Tenant{Namespace: s.Namespace}}
	sources, err := source.New(source.Options{Opener: counting, ArtifactRoot: root})
	if err != nil {
		t.Fatal(err)
	}
	r := &Reconciler{Sources: sources, Recorder: events.NewFakeRecorder(100)}
	if _, err := (bundles{r}).expand(r.waiting(t.Context(), client.ObjectKeyFromObject(s)), s, &resolution{}, nil); err != nil {
		t.Fatal(err)
	}
	if counting.own.Load() == 0 || counting.others.Load() > 0 {
		t.Errorf("%d were opened for the namespace, %d for others", counting.own.Load(), counting.others.Load())
	}
}
