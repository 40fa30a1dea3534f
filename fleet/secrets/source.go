// SPDX-License-Identifier: Apache-2.0

// Package secrets finds clusters by Secrets that hold a kubeconfig.
package secrets

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-chandler/chandler/fleet"
	"github.com/cluster-chandler/chandler/fleet/internal/objects"
)

// Name is the name of the source.
const Name = "secrets"

// The defaults are those of multicluster-runtime's kubeconfig provider.
const (
	DefaultLabel = "sigs.k8s.io/multicluster-runtime-kubeconfig"
	DefaultKey   = "kubeconfig"
)

// Options of a Source. Each may be left out.
type Options struct {
	// Label is the key of the label whose value "true" makes a Secret a cluster. Defaults to DefaultLabel.
	Label string
	// Key is that of the kubeconfig in the Secret. Defaults to DefaultKey.
	Key string
	// Match restricts the source further. Nil means all.
	Match func(labels map[string]string) bool
}

// Source reports Secrets that hold a kubeconfig, under the name "namespace/name", with their
// labels. They are watched by their metadata, in the manager's cache, so its restrictions hold. A
// kubeconfig is read from the API server when its Secret has changed. A Secret that is being
// deleted stays reported until it is gone.
type Source struct {
	objects.Source
	options Options
}

// New returns a Source.
func New(o Options) *Source {
	if o.Label == "" {
		o.Label = DefaultLabel
	}
	if o.Key == "" {
		o.Key = DefaultKey
	}
	s := &Source{options: o}
	s.Source = objects.Source{
		SourceName: Name, Controller: "fleet-secrets", InScope: s.inScope, Member: s.member,
		Object: &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}},
		List:   &metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "SecretList"}},
	}
	return s
}

func (s *Source) member(ctx context.Context, secret client.Object) (fleet.Member, error) {
	key := client.ObjectKeyFromObject(secret)
	m, err := s.Secrets.Member(ctx, key, key, s.options.Key)
	m.Owner = &metav1.OwnerReference{APIVersion: "v1", Kind: "Secret", Name: key.Name, UID: secret.GetUID()}
	m.Deleting = !secret.GetDeletionTimestamp().IsZero()
	return m, err
}

func (s *Source) inScope(labels map[string]string) bool {
	return labels[s.options.Label] == "true" && (s.options.Match == nil || s.options.Match(labels))
}
