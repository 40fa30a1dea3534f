// SPDX-License-Identifier: Apache-2.0

// Package controllers lists the controllers of an instance.
package controllers

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/addonplan"
	"github.com/cluster-chandler/chandler/controllers/addonstack"
	"github.com/cluster-chandler/chandler/controllers/assignment"
	"github.com/cluster-chandler/chandler/controllers/assignment/missing"
	"github.com/cluster-chandler/chandler/controllers/assignment/removal"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon"
	"github.com/cluster-chandler/chandler/controllers/management"
	"github.com/cluster-chandler/chandler/fleet"
	"github.com/cluster-chandler/chandler/fleet/budget"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/member"
	"github.com/cluster-chandler/chandler/internal/render"
	"github.com/cluster-chandler/chandler/internal/source"
	"github.com/cluster-chandler/chandler/internal/valuesource"
)

// Options are what the controllers need beside the manager.
type Options struct {
	Fleet *fleet.Provider
	// MemberNamespace is that of the ClusterAddons of clusters for which no object stands.
	MemberNamespace string
	Sources         *source.Sources
	Renderer        *render.Renderer
	// WatchFilter of this instance, "" if it has none.
	WatchFilter string
	// RequireImpersonation says that add-ons are delivered with the rights of ServiceAccounts alone.
	RequireImpersonation bool

	// Memory is where all that is large counts.
	Memory *budget.Budget

	// Numbers of workers.
	AddonStackWorkers, ClusterWorkers, ClusterAddonWorkers int
}

// Reads are the kinds that the controllers list and watch in each namespace of the scope. Kinds of
// control plane and infrastructure providers are known only from Clusters, so they aren't here.
var Reads = []schema.GroupResource{
	{Group: clusterv1.GroupVersion.Group, Resource: "clusters"},
	{Group: addonsv1.GroupVersion.Group, Resource: "addonstacks"},
	{Group: addonsv1.GroupVersion.Group, Resource: "clusteraddons"},
	{Group: addonsv1.GroupVersion.Group, Resource: "addonplans"},
	{Group: appsv1.GroupName, Resource: "controllerrevisions"},
	{Resource: "configmaps"},
	{Resource: "secrets"},
}

// ProfileReads are those of the source of ClusterProfiles, where an instance has it.
var ProfileReads = []schema.GroupResource{{Group: inventoryv1alpha1.Group, Resource: "clusterprofiles"}}

// Setup adds all controllers to the manager, in the order in which a change runs through them.
func Setup(mgr mcmanager.Manager, o Options) error {
	local := mgr.GetLocalManager()
	members := &member.Inventory{Client: local.GetClient(), Fleet: o.Fleet, Names: member.Names{Namespace: o.MemberNamespace}}

	turns := &management.Turns{}
	values := valuesource.NewReader(local.GetCache(), local.GetAPIReader(), o.Memory)

	stacks := &addonstack.Reconciler{
		Client:      local.GetClient(),
		APIReader:   local.GetAPIReader(),
		Recorder:    local.GetEventRecorder("addonstack"),
		Members:     members,
		WatchFilter: o.WatchFilter,
		Sources:     o.Sources,
		Values:      values,
		Turns:       turns,
		Clock:       clock.RealClock{},
	}
	if err := stacks.SetupWithManager(mgr, o.AddonStackWorkers); err != nil {
		return fmt.Errorf("setting up the AddonStack controller: %w", err)
	}

	kinds, err := discovery.NewDiscoveryClientForConfigAndClient(local.GetConfig(), local.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("making a discovery client: %w", err)
	}
	missingStacks := missing.New(kinds, local.GetAPIReader(), clock.RealClock{})
	assignments := &assignment.Reconciler{
		Client:    local.GetClient(),
		APIReader: local.GetAPIReader(),
		Recorder:  local.GetEventRecorder("assignment"),
		Members:   members,
		Missing:   missingStacks,
		Guard:     removal.NewGuard(local.GetClient(), members, missingStacks, clock.RealClock{}),
		Clock:     clock.RealClock{},
		Turns:     turns,
	}
	if err := assignments.SetupWithManager(mgr, o.ClusterWorkers); err != nil {
		return fmt.Errorf("setting up the assignment controller: %w", err)
	}

	queue := &clusteraddon.Queue{Names: members.Names}
	clusterAddons := &clusteraddon.Reconciler{Parts: clusteraddon.Parts{
		Client:    local.GetClient(),
		APIReader: local.GetAPIReader(),
		Recorder:  local.GetEventRecorder("clusteraddon"),
		Members:   members,
		Fleet:     o.Fleet,
		Sources:   o.Sources,
		Renderer:  o.Renderer,
		Values:    values,
		Deliverer: deliver.New(deliver.Options{Notify: queue.AddBegunCluster, Memory: o.Memory}),
		Memory:    o.Memory,
		Queue:     queue,
		Clock:     clock.RealClock{},

		RequireImpersonation: o.RequireImpersonation,
	}}
	if err := clusterAddons.SetupWithManager(mgr, o.ClusterAddonWorkers); err != nil {
		return fmt.Errorf("setting up the ClusterAddon controller: %w", err)
	}

	plans := &addonplan.Reconciler{
		Client:      local.GetClient(),
		Recorder:    local.GetEventRecorder("addonplan"),
		Members:     members,
		Clusters:    clusterAddons,
		Foresee:     stacks.Foresee,
		Removals:    assignments.Removals,
		IsBusy:      func() bool { return !queue.IsEmpty() },
		WatchFilter: o.WatchFilter,
		Clock:       clock.RealClock{},
	}
	if err := plans.SetupWithManager(mgr); err != nil {
		return fmt.Errorf("setting up the AddonPlan controller: %w", err)
	}
	return local.Add(manager.RunnableFunc(func(ctx context.Context) error {
		return o.Sources.Watch(ctx, func(changed string) {
			stacks.PathChanged(ctx, changed)
			clusterAddons.PathChanged(changed)
		})
	}))
}
