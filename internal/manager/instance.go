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
	identity := o.identity()
	r, err := registration.New(mgr, registration.Options{
		Scope:          identity.scope,
		Namespace:      identity.namespace,
		Name:           identity.name,
		LeaderElection: o.elects(),
		LeaseName:      identity.leaseBeside(o.elects()),
		Version:        version.Get(),
		Heartbeat:      o.instanceHeartbeat,
		Sandbox:        instanceSandbox(),
		Reads:          o.reads(),
		Controllers:    closed.Run,
		Die:            die,
	})
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
	sources, err := source.New(source.Options{
		Opener: renderer, ArtifactRoot: o.artifactRoot, CredentialsDir: o.credentialsDir, RequireSignaturesBy: o.requireSignaturesBy, Client: mgr.GetAPIReader(), Metadata: mgr.GetCache(),
		AllowLoopback: o.allowLoopback, UserAgent: userAgent(), Store: newStore(o, mgr.GetLogger()),
	})
	if err != nil {
		return fmt.Errorf("setting up the chart sources: %w", err)
	}
	err = controllers.Setup(mc, controllers.Options{
		Fleet:                clusters,
		MemberNamespace:      cmp.Or(append(slices.Clone(o.namespaces), o.identity().namespace)...),
		Sources:              sources,
		Renderer:             renderer,
		WatchFilter:          o.watchFilter,
		RequireImpersonation: o.requireImpersonation,
		AddonStackWorkers:    o.addonStackConcurrency,
		ClusterWorkers:       o.clusterConcurrency,
		ClusterAddonWorkers:  o.clusterAddonConcurrency,
	})
	if err != nil {
		return err
	}
	return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error { return clusters.Start(ctx, mc) }))
}

// newStore returns nil without a directory: then sources keep what they fetch in memory.
func newStore(o *Options, log logr.Logger) *store.Store {
	if o.cacheDir == "" {
		return nil
	}
	return store.New(store.Options{
		Directory: o.cacheDir,
		Bytes:     o.cacheSizeMiB << 20,
		Log:       log.WithName("cache"),
	})
}

// instanceSandbox returns what keeps render workers from doing anything else.
func instanceSandbox() addonsv1.InstanceSandbox {
	if sandbox.WhyUnfiltered() != nil {
		return addonsv1.SandboxLimits
	}
	return addonsv1.SandboxSeccomp
}

func newRenderer(o *Options) *render.Renderer {
	return render.New(render.Options{
		Workers:     o.renderWorkers,
		Timeout:     o.renderTimeout,
		MemoryBytes: o.renderMemoryMiB << 20,
	})
}

// die ends the process as a crash would: an end in order takes time, in which
// another instance may take over. The work in progress is in the release records.
func die(err error) {
	klog.Flush()
	fmt.Fprintf(os.Stderr, "chandler: %v\n", err)
	os.Exit(ExitFailure)
}
