// SPDX-License-Identifier: Apache-2.0

// Package secrets finds clusters by Secrets that hold a kubeconfig.
package secrets

import (
	"cmp"
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
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

// Options of a source. Each may be left out.
type Options struct {
	// Name of the source, by which a Provider tells it from others. Defaults to the constant Name.
	Name string
	// Label is the key of the label whose value "true" makes a Secret a cluster. Defaults to DefaultLabel.
	Label string
	// Selector takes the place of Label where Secrets are told by more than one label, or by another value.
	Selector labels.Selector
	// Key is that of the kubeconfig in the Secret. Defaults to DefaultKey.
	Key string
	// Match restricts the source further. Nil means all.
	Match func(labels map[string]string) bool
}

// New returns a source of Secrets that hold a kubeconfig, under the name "namespace/name", with their
// labels. They are watched by their metadata, in the manager's cache, so its restrictions hold. A
// kubeconfig is read from the API server when its Secret has changed. A Secret that is being
// deleted stays reported until it is gone.
func New(o Options) fleet.Source {
	dataKey, name := cmp.Or(o.Key, DefaultKey), cmp.Or(o.Name, Name)
	if o.Selector == nil {
		o.Selector = labels.SelectorFromSet(labels.Set{cmp.Or(o.Label, DefaultLabel): "true"})
	}
	return &objects.Source{
		SourceName: name, Controller: "fleet-" + name,
		Object: &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}},
		List:   &metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "SecretList"}},
		InScope: func(has map[string]string) bool {
			return o.Selector.Matches(labels.Set(has)) && (o.Match == nil || o.Match(has))
		},
		Member: func(ctx context.Context, secret client.Object, secrets *objects.Reader) (fleet.Member, error) {
			key := client.ObjectKeyFromObject(secret)
			m, err := secrets.Member(ctx, key, key, dataKey)
			m.Owner = &metav1.OwnerReference{APIVersion: "v1", Kind: "Secret", Name: key.Name, UID: secret.GetUID()}
			m.Deleting = !secret.GetDeletionTimestamp().IsZero()
			return m, err
		},
	}
}
