// SPDX-License-Identifier: Apache-2.0

// Package manager puts the process together: flags, logging, the controllers of an instance,
// and the webhooks that instances share.
package manager

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"

	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/cluster-chandler/chandler/fleet/budget"
	"github.com/cluster-chandler/chandler/internal/render"
	"github.com/cluster-chandler/chandler/internal/render/sandbox"
	"github.com/cluster-chandler/chandler/internal/version"
)

// ExitFailure is the exit code of a process that can't go on.
const ExitFailure = 1

// gcPercent lets garbage grow to half of what is live before it is collected, not to
// as much again: many instances share a management cluster, and most of them rest.
const gcPercent = 50

// Run works until the context ends.
func Run(ctx context.Context, o *Options) error {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	if err := setupLogging(o); err != nil {
		return err
	}
	ctrl.SetLogger(klog.Background())
	log := ctrl.Log.WithName("setup")
	scope := o.instance.Scope
	log.Info("Starting Chandler", "version", version.String(), "namespaces", scope.Namespaces, "watchFilter", scope.WatchFilter)

	if err := sandbox.ProtectMemory(); err != nil {
		log.Error(err, "Render workers could read this process, if they had a fault")
	}
	if why := sandbox.WhyUnfiltered(); why != nil && o.requireSeccomp {
		return fmt.Errorf("--require-seccomp: the system calls of render workers can't be filtered: %w", why)
	} else if why != nil {
		log.Info("The system calls of render workers aren't filtered; limits on files and memory hold all the same", "reason", why.Error())
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("finding the management cluster: %w", err)
	}
	memory := budget.New(budget.Limits{
		All: o.memoryMiB.All << 20, Namespace: o.memoryMiB.Namespace << 20, Cluster: o.memoryMiB.Cluster << 20,
		Reserve: o.memoryMiB.All << 20 / 8, Entry: o.memoryMiB.All << 20 / 32, // a cluster without much needs less
	})
	for _, collector := range MemoryMetrics(memory) {
		if err := metrics.Registry.Register(collector); err != nil {
			return fmt.Errorf("registering metrics: %w", err)
		}
	}
	o.fleet.Memory, o.sources.Memory, o.workers.Memory, o.render.Memory = memory, memory, memory, memory
	o.render.MemoryBytes = o.renderMemoryMiB << 20
	renderer := render.New(o.render)
	defer renderer.Close()
	mgr, err := newManager(config, o, renderer)
	if err != nil {
		return err
	}
	return mgr.Start(ctx)
}
