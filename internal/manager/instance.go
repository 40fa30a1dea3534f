// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers"
	"github.com/cluster-chandler/chandler/internal/instance/gate"
	"github.com/cluster-chandler/chandler/internal/instance/registration"
	"github.com/cluster-chandler/chandler/internal/render"
	"github.com/cluster-chandler/chandler/internal/render/sandbox"
	"github.com/cluster-chandler/chandler/internal/source"
	"github.com/cluster-chandler/chandler/internal/source/store"
	"github.com/cluster-chandler/chandler/internal/version"
)

// setupInstance adds the instance's registration to the manager, and all else
// behind a gate that the registration opens once the instance holds its scope.
// Until then nothing of it is listed or watched.
func setupInstance(mgr manager.Manager, o *Options, renderer *render.Renderer) (healthz.Checker, error) {
	closed := gate.New(mgr)
	if err := setupControllers(closed, o, renderer); err != nil {
		return nil, err
	}
	is := o.identity()
	is.Version, is.Sandbox = version.Get(), instanceSandbox()
	is.Reads, is.Controllers, is.Die = o.reads(), closed.Run, die
	r, err := registration.New(mgr, is)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(mgr.Add(r), mgr.Add(r.Standby())); err != nil {
		return nil, fmt.Errorf("adding the registration of the instance: %w", err)
	}
	return r.Ready, nil
}

// setupControllers adds the controllers, and the fleet that they work on.
func setupControllers(mgr manager.Manager, o *Options, renderer *render.Renderer) error {
	clusters, err := newFleet(o)
	if err != nil {
		return err
	}
	mc, err := mcmanager.WithMultiCluster(mgr, clusters)
	if err != nil {
		return fmt.Errorf("creating the multicluster manager: %w", err)
	}
	if err := clusters.SetupWithManager(mgr); err != nil {
		return fmt.Errorf("setting up the fleet provider: %w", err)
	}
	options := o.sources
	options.Opener, options.Store = renderer, newStore(o, mgr.GetLogger())
	options.Client, options.Metadata = mgr.GetAPIReader(), mgr.GetCache()
	options.AllowLoopback, options.UserAgent = o.fleet.AllowLoopback, userAgent()
	sources, err := source.New(options)
	if err != nil {
		return fmt.Errorf("setting up the chart sources: %w", err)
	}
	workers, scope := o.workers, o.instance.Scope
	workers.Fleet, workers.Sources, workers.Renderer = clusters, sources, renderer
	workers.WatchFilter = scope.WatchFilter
	workers.MemberNamespace = cmp.Or(append(slices.Clone(scope.Namespaces), o.identity().Namespace)...)
	if err := controllers.Setup(mc, workers); err != nil {
		return err
	}
	return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error { return clusters.Start(ctx, mc) }))
}

// newStore returns nil without a directory: then sources keep what they fetch in memory.
func newStore(o *Options, log logr.Logger) *store.Store {
	if o.cache.Directory == "" {
		return nil
	}
	options := o.cache
	options.Bytes, options.Log = o.cacheSizeMiB<<20, log.WithName("cache")
	return store.New(options)
}

// instanceSandbox returns what keeps render workers from doing anything else.
func instanceSandbox() addonsv1.InstanceSandbox {
	if sandbox.WhyUnfiltered() != nil {
		return addonsv1.SandboxLimits
	}
	return addonsv1.SandboxSeccomp
}

// die ends the process as a crash would: an end in order takes time, in which
// another instance may take over. The work in progress is in the release records.
func die(err error) {
	klog.Flush()
	fmt.Fprintf(os.Stderr, "chandler: %v\n", err)
	os.Exit(ExitFailure)
}
