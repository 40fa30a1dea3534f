// SPDX-License-Identifier: Apache-2.0

// Package profiles finds clusters by ClusterProfiles of the Cluster Inventory API.
package profiles

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/cluster-chandler/chandler/fleet"
	"github.com/cluster-chandler/chandler/fleet/internal/objects"
)

// Name is the name of the source.
const Name = "profiles"

// Options of a Source. Each may be left out.
type Options struct {
	// Match restricts the source to profiles with some labels. Nil means all.
	Match func(labels map[string]string) bool
	// Plugins get credentials for access providers, by the name of the access provider. They
	// are programs that an administrator chose; a profile names none.
	Plugins map[string]Plugin
}

// Source reports ClusterProfiles under the name "namespace/name", with their labels and properties.
// The manager's scheme must hold sigs.k8s.io/cluster-inventory-api/apis/v1alpha1.
//
// Of a profile's access providers, the first is taken that is known here: secretreader and
// kubeconfig-secretreader, whose formats are read without running their programs, and those of
// Options.Plugins. Secrets are those of the profile's namespace alone. The cluster that the
// profile describes is checked as any kubeconfig: no proxy, no files, no insecure TLS.
type Source struct {
	reports  objects.Reports
	options  Options
	profiles client.Reader // cached
	initial  objects.Initial

	mu   sync.Mutex
	uses map[types.NamespacedName]types.NamespacedName // Secrets by profile
}

// New returns a Source.
func New(o Options) *Source {
	return &Source{options: o, uses: map[types.NamespacedName]types.NamespacedName{}}
}

// Name implements fleet.Source.
func (*Source) Name() string { return Name }

// SetupWithManager implements fleet.Source.
func (s *Source) SetupWithManager(mgr manager.Manager, sink fleet.Sink) error {
	s.profiles = mgr.GetCache()
	s.reports.Setup(mgr, sink)
	err := ctrl.NewControllerManagedBy(mgr).
		Named("fleet-profiles").
		For(&inventoryv1alpha1.ClusterProfile{}).
		WatchesMetadata(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(s.profilesOfSecret)).
		WatchesRawSource(s.reports.Queue.Source()).
		WithOptions(objects.Options()).
		Complete(s)
	if err != nil {
		return fmt.Errorf("setting up the discovery of ClusterProfiles: %w", err)
	}
	return s.initial.Track(mgr, &inventoryv1alpha1.ClusterProfileList{}, sink.Synced)
}

// profilesOfSecret returns the profiles whose credentials are in a Secret.
func (s *Source) profilesOfSecret(_ context.Context, o client.Object) (requests []reconcile.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for profile, used := range s.uses {
		if used == client.ObjectKeyFromObject(o) {
			requests = append(requests, reconcile.Request{NamespacedName: profile})
		}
	}
	return requests
}

// Refresh implements fleet.Source.
func (s *Source) Refresh(name multicluster.ClusterName) { s.reports.Refresh(name) }

// Reconcile reports one ClusterProfile. It writes nothing.
func (s *Source) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	defer s.initial.Done(request.NamespacedName)
	name := objects.NameOf(request.NamespacedName)
	profile := &inventoryv1alpha1.ClusterProfile{}
	err := s.profiles.Get(ctx, request.NamespacedName, profile)
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("getting ClusterProfile %s: %w", name, err)
	}
	if exists := err == nil; !exists || s.options.Match != nil && !s.options.Match(profile.Labels) {
		s.use(request.NamespacedName, types.NamespacedName{})
		s.reports.Remove(request.NamespacedName)
		return reconcile.Result{}, nil
	}
	access, err := s.access(ctx, profile)
	s.reports.Sink.Set(name, fleet.Member{
		ID:         string(profile.UID),
		Kubeconfig: access.kubeconfig,
		Expires:    access.expires,
		Problem:    access.problem,
		Origin:     "ClusterProfile " + request.String(),
		Labels:     profile.Labels,
		Properties: propertiesOf(profile),
		Owner: &metav1.OwnerReference{
			APIVersion: inventoryv1alpha1.GroupVersion.String(), Kind: "ClusterProfile", Name: profile.Name, UID: profile.UID,
		},
		Deleting: !profile.DeletionTimestamp.IsZero(),
	})
	return reconcile.Result{}, err
}

// access is what a profile leads to.
type access struct {
	kubeconfig []byte
	expires    time.Time
	problem    string
}

// access returns the kubeconfig that a profile's first known access provider leads to.
func (s *Source) access(ctx context.Context, profile *inventoryv1alpha1.ClusterProfile) (access, error) {
	key := client.ObjectKeyFromObject(profile)
	for _, provider := range providersOf(profile) {
		if plugin, ok := s.options.Plugins[provider.Name]; ok {
			s.use(key, types.NamespacedName{})
			return plugin.access(ctx, provider)
		}
		read, ok := formats[provider.Name]
		if !ok {
			continue
		}
		from, err := read(provider.Cluster)
		if err != nil {
			return access{problem: fmt.Sprintf("has an access provider %s that can't be used: %v", provider.Name, err)}, nil
		}
		return s.fromSecret(ctx, profile, provider, from)
	}
	s.use(key, types.NamespacedName{})
	return access{problem: "has no access provider that is known here (" + knownProviders(s.options.Plugins) + ")"}, nil
}

// fromSecret returns the kubeconfig that a profile and its Secret make.
func (s *Source) fromSecret(ctx context.Context, profile *inventoryv1alpha1.ClusterProfile, provider inventoryv1alpha1.AccessProvider, from reference) (access, error) {
	key := client.ObjectKeyFromObject(profile)
	if from.namespace != "" && from.namespace != profile.Namespace {
		return access{problem: "names a Secret of namespace " + from.namespace + "; only Secrets of its own namespace are read"}, nil
	}
	of := types.NamespacedName{Namespace: profile.Namespace, Name: from.name}
	s.use(key, of)
	value, err := s.reports.Secrets.Read(ctx, key, of, from.key)
	switch {
	case len(value.Data) == 0 && value.Problem != "":
		return access{problem: "names Secret " + from.name + ", which " + value.Problem}, err
	case len(value.Data) == 0:
		return access{problem: "names Secret " + from.name + ", which is missing"}, err
	}
	user, problem := from.user(value.Data)
	if problem != "" {
		return access{problem: "names Secret " + from.name + ", which " + problem}, err
	}
	kubeconfig, problem := compose(provider.Cluster, user)
	if value.Problem != "" {
		problem = "names Secret " + from.name + ", which " + value.Problem
	}
	return access{kubeconfig: kubeconfig, problem: problem}, err
}

// use notes which Secret a profile uses; an empty name is none.
func (s *Source) use(profile, secret types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if secret.Name == "" {
		delete(s.uses, profile)
		return
	}
	s.uses[profile] = secret
}

// providersOf returns the access providers of a profile, and those of the deprecated field whose
// names aren't among them.
func providersOf(profile *inventoryv1alpha1.ClusterProfile) []inventoryv1alpha1.AccessProvider {
	all := slices.Clone(profile.Status.AccessProviders)
	for _, old := range profile.Status.CredentialProviders {
		if !slices.ContainsFunc(all, func(p inventoryv1alpha1.AccessProvider) bool { return p.Name == old.Name }) {
			all = append(all, old)
		}
	}
	return all
}

func propertiesOf(profile *inventoryv1alpha1.ClusterProfile) map[string]string {
	properties := map[string]string{}
	for _, p := range profile.Status.Properties {
		properties[p.Name] = p.Value
	}
	return properties
}
