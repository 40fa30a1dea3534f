// SPDX-License-Identifier: Apache-2.0

// Package controllers lists the controllers of an instance.
package controllers

import (
	"fmt"

	"k8s.io/utils/clock"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"

	"github.com/cluster-chandler/chandler/controllers/addonstack"
	"github.com/cluster-chandler/chandler/controllers/assignment"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/fleet"
	"github.com/cluster-chandler/chandler/internal/render"
	"github.com/cluster-chandler/chandler/internal/source"
)

// Options are what the controllers need beside the manager.
type Options struct {
	Fleet    *fleet.Provider
	Sources  *source.Sources
	Renderer *render.Renderer

	// Numbers of workers.
	AddonStackWorkers, ClusterWorkers, ClusterAddonWorkers int
}

// Setup adds all controllers to the manager, in the order in which a change
// runs through them.
func Setup(mgr mcmanager.Manager, o Options) error {
	local := mgr.GetLocalManager()

	stacks := &addonstack.Reconciler{
		Client:    local.GetClient(),
		APIReader: local.GetAPIReader(),
		Recorder:  local.GetEventRecorder("addonstack"),
	}
	if err := stacks.SetupWithManager(mgr, o.AddonStackWorkers); err != nil {
		return fmt.Errorf("setting up the AddonStack controller: %w", err)
	}

	assignments := &assignment.Reconciler{
		Client:    local.GetClient(),
		APIReader: local.GetAPIReader(),
		Recorder:  local.GetEventRecorder("assignment"),
	}
	if err := assignments.SetupWithManager(mgr, o.ClusterWorkers); err != nil {
		return fmt.Errorf("setting up the assignment controller: %w", err)
	}

	queue := &clusteraddon.Queue{}
	clusterAddons := &clusteraddon.Reconciler{
		Client:    local.GetClient(),
		APIReader: local.GetAPIReader(),
		Recorder:  local.GetEventRecorder("clusteraddon"),
		Fleet:     o.Fleet,
		Sources:   o.Sources,
		Renderer:  o.Renderer,
		Deliverer: deliver.New(deliver.Options{Notify: queue.AddTarget}),
		Queue:     queue,
		Clock:     clock.RealClock{},
	}
	if err := clusterAddons.SetupWithManager(mgr, o.ClusterAddonWorkers); err != nil {
		return fmt.Errorf("setting up the ClusterAddon controller: %w", err)
	}
	return nil
}
