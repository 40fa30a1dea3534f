// SPDX-License-Identifier: Apache-2.0

// Package secrets finds clusters by Secrets that hold a kubeconfig.
package secrets

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

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
	reports  objects.Reports
	options  Options
	metadata client.Reader // cached
	initial  objects.Initial
}

// New returns a Source.
func New(o Options) *Source {
	if o.Label == "" {
		o.Label = DefaultLabel
	}
	if o.Key == "" {
		o.Key = DefaultKey
	}
	return &Source{options: o}
}

// Name implements fleet.Source.
func (s *Source) Name() string { return Name }

// SetupWithManager implements fleet.Source.
func (s *Source) SetupWithManager(mgr manager.Manager, sink fleet.Sink) error {
	s.metadata = mgr.GetCache()
	s.reports.Setup(mgr, sink)
	err := ctrl.NewControllerManagedBy(mgr).
		Named("fleet-secrets").
		For(&corev1.Secret{}, builder.OnlyMetadata).
		WatchesRawSource(s.reports.Queue.Source()).
		WithOptions(objects.Options()).
		Complete(s)
	if err != nil {
		return fmt.Errorf("setting up the discovery of kubeconfig Secrets: %w", err)
	}
	return s.initial.Track(mgr, &metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "SecretList"}}, sink.Synced)
}

// Refresh implements fleet.Source.
func (s *Source) Refresh(name multicluster.ClusterName) { s.reports.Refresh(name) }

// Reconcile reports one Secret. It writes nothing.
func (s *Source) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	defer s.initial.Done(request.NamespacedName)
	name := objects.NameOf(request.NamespacedName)
	object := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}}
	err := s.metadata.Get(ctx, request.NamespacedName, object)
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("getting the metadata of Secret %s: %w", name, err)
	}
	if exists := err == nil; !exists || !s.inScope(object.Labels) {
		s.reports.Remove(request.NamespacedName)
		return reconcile.Result{}, nil
	}
	kubeconfig, err := s.reports.Secrets.Read(ctx, request.NamespacedName, request.NamespacedName, s.options.Key)
	s.reports.Sink.Set(name, fleet.Member{
		ID:         string(object.UID),
		Kubeconfig: kubeconfig.Data,
		Problem:    kubeconfig.Problem,
		Origin:     "Secret " + request.String(),
		Labels:     object.Labels,
		Owner:      &metav1.OwnerReference{APIVersion: "v1", Kind: "Secret", Name: object.Name, UID: object.UID},
		Deleting:   !object.DeletionTimestamp.IsZero(),
	})
	return reconcile.Result{}, err
}

func (s *Source) inScope(labels map[string]string) bool {
	return labels[s.options.Label] == "true" && (s.options.Match == nil || s.options.Match(labels))
}
