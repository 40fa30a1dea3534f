// SPDX-License-Identifier: Apache-2.0

// Package profiles finds clusters by ClusterProfiles of the Cluster Inventory API.
package profiles

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-chandler/chandler/fleet"
	"github.com/cluster-chandler/chandler/fleet/internal/objects"
)

// Name is the name of the source.
const Name = "profiles"

// Options of a source. Each may be left out.
type Options struct {
	// Name of the source, by which a Provider tells it from others. Defaults to the constant Name.
	Name string
	// Match restricts the source to profiles with some labels. Nil means all.
	Match func(labels map[string]string) bool
	// Plugins get credentials for access providers, by the name of the access provider. They
	// are programs that an administrator chose; a profile names none.
	Plugins map[string]Plugin
}

// New returns a source of ClusterProfiles under the name "namespace/name", with their labels and properties.
// The manager's scheme must hold sigs.k8s.io/cluster-inventory-api/apis/v1alpha1.
//
// Of a profile's access providers, the first is taken that is known here: secretreader and
// kubeconfig-secretreader, whose formats are read without running their programs, and those of
// Options.Plugins. Secrets are those of the profile's namespace alone. The cluster that the
// profile describes is checked as any kubeconfig: no proxy, no files, no insecure TLS.
func New(o Options) fleet.Source {
	name := cmp.Or(o.Name, Name)
	return &objects.Source{
		SourceName: name, Controller: "fleet-" + name, Object: &inventoryv1alpha1.ClusterProfile{}, List: &inventoryv1alpha1.ClusterProfileList{},
		InScope: func(labels map[string]string) bool { return o.Match == nil || o.Match(labels) },
		Member:  o.member,
	}
}

func (o Options) member(ctx context.Context, object client.Object, secrets *objects.Reader) (fleet.Member, error) {
	profile, ok := object.(*inventoryv1alpha1.ClusterProfile)
	if !ok {
		return fleet.Member{}, fmt.Errorf("%T is no ClusterProfile", object)
	}
	m, err := o.access(ctx, profile, secrets)
	m.Origin = "ClusterProfile " + client.ObjectKeyFromObject(profile).String()
	m.Properties, m.Deleting = map[string]string{}, !profile.DeletionTimestamp.IsZero()
	for _, p := range profile.Status.Properties {
		m.Properties[p.Name] = p.Value
	}
	m.Owner = &metav1.OwnerReference{
		APIVersion: inventoryv1alpha1.GroupVersion.String(), Kind: "ClusterProfile", Name: profile.Name, UID: profile.UID,
	}
	return m, err
}

// access returns the kubeconfig that a profile's first known access provider leads to.
func (o Options) access(
	ctx context.Context, profile *inventoryv1alpha1.ClusterProfile, secrets *objects.Reader,
) (fleet.Member, error) {
	for _, provider := range providersOf(profile) {
		if plugin, ok := o.Plugins[provider.Name]; ok {
			secrets.Forget(client.ObjectKeyFromObject(profile))
			return plugin.access(ctx, provider)
		}
		if provider.Name != tokenReader && provider.Name != kubeconfigReader {
			continue
		}
		from, err := referenceOf(provider)
		if err != nil {
			return fleet.Member{Problem: fmt.Sprintf("has an access provider %s that can't be used: %v", provider.Name, err)}, nil
		}
		return from.member(ctx, profile, provider, secrets)
	}
	secrets.Forget(client.ObjectKeyFromObject(profile))
	return fleet.Member{Problem: "has no access provider that is known here (" + knownProviders(o.Plugins) + ")"}, nil
}

// member returns the kubeconfig that a profile and its Secret make.
func (from reference) member(
	ctx context.Context, profile *inventoryv1alpha1.ClusterProfile, provider inventoryv1alpha1.AccessProvider,
	secrets *objects.Reader,
) (fleet.Member, error) {
	if from.Namespace != "" && from.Namespace != profile.Namespace {
		return fleet.Member{Problem: "names a Secret of namespace " + from.Namespace + "; only Secrets of its own namespace are read"}, nil
	}
	secret := client.ObjectKey{Namespace: profile.Namespace, Name: from.Name}
	value, err := secrets.Read(ctx, client.ObjectKeyFromObject(profile), secret, from.Key)
	named := "names Secret " + from.Name + ", which "
	if len(value.Data) == 0 {
		return fleet.Member{Problem: named + cmp.Or(value.Problem, "is missing")}, err
	}
	user, problem := from.user(value.Data)
	if problem != "" {
		return fleet.Member{Problem: named + problem}, err
	}
	m, failed := compose(provider.Cluster, user)
	if value.Problem != "" {
		m.Problem = named + value.Problem
	}
	return m, errors.Join(err, failed)
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
