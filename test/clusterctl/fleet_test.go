// SPDX-License-Identifier: Apache-2.0

package clusterctl

import (
	"context"
	"sync"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/cluster-chandler/chandler/test/must"
)

// fleet is two management clusters, which clusterctl has initialized, and one workload cluster.
type fleet struct{ here, there, workload *server }

// theFleet is started when it is first asked for. All tests that move something share it.
func theFleet(t *testing.T) fleet {
	t.Helper()
	f, err := startFleet()
	must.Succeed(t, err)
	for _, hub := range []*server{f.here, f.there} {
		initializeOnce(t, hub)
	}
	return f
}

var startFleet = sync.OnceValues(func() (f fleet, err error) {
	g, ctx := errgroup.WithContext(context.Background())
	for name, hub := range map[string]**server{"here": &f.here, "there": &f.there} {
		g.Go(func() (err error) {
			if *hub, err = startManagement(ctx, name); err != nil {
				return err
			}
			return (*hub).GrantScopes(context.Background())
		})
	}
	g.Go(func() (err error) {
		f.workload, err = startServer(ctx, "workload")
		return err
	})
	return f, g.Wait()
})

var initialized sync.Map

func initializeOnce(t *testing.T, hub *server) {
	t.Helper()
	once, _ := initialized.LoadOrStore(hub, &sync.Once{})
	once.(*sync.Once).Do(func() {
		mustRun(t, "init", "--kubeconfig="+hub.kubeconfig, "--core=cluster-api", "--bootstrap=-", "--control-plane=-",
			"--infrastructure=test", "--addon=chandler:"+newerVersion)
		hub.removeWebhooks(t)
	})
}

// other is the management cluster that it is moved to.
func (f fleet) other(hub *server) *server {
	if hub == f.here {
		return f.there
	}
	return f.here
}

// version of the manager that runs on a management cluster. They differ, so that the workload cluster's audit log tells
// their requests apart: what is in a kubeconfig moves along.
func (f fleet) version(hub *server) string {
	if hub == f.here {
		return olderVersion
	}
	return newerVersion
}
