// SPDX-License-Identifier: Apache-2.0

// Package instance knows what one running instance of Chandler looks after.
package instance

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// Scope is what an instance looks after: some namespaces or all, and objects
// with a value of the watch label, or any.
type Scope struct {
	// Namespaces is empty for all.
	Namespaces []string
	// WatchFilter is the value of label cluster.x-k8s.io/watch-filter, "" for any.
	WatchFilter string
}

// CacheOptions limits LIST and WATCH to the scope, at the server: objects
// outside of it never reach this process.
func (s Scope) CacheOptions(syncPeriod time.Duration) cache.Options {
	filtered := labels.Everything()
	revisions := hasLabel(addonsv1.StackNameLabel)
	if s.WatchFilter != "" {
		filtered = labels.SelectorFromSet(labels.Set{clusterv1.WatchLabel: s.WatchFilter})
		requirements, _ := filtered.Requirements()
		revisions = revisions.Add(requirements...)
	}
	o := cache.Options{
		SyncPeriod:                  &syncPeriod,
		DefaultTransform:            cache.TransformStripManagedFields(),
		ReaderFailOnMissingInformer: false,
		ByObject: map[client.Object]cache.ByObject{
			&clusterv1.Cluster{}:         {Label: filtered},
			&addonsv1.AddonStack{}:       {Label: filtered},
			&addonsv1.ClusterAddon{}:     {Label: filtered},
			&appsv1.ControllerRevision{}: {Label: revisions},
			&corev1.Secret{}:             {Transform: metadataOnly},
			&corev1.ConfigMap{}:          {Transform: metadataOnly},
		},
	}
	if len(s.Namespaces) > 0 {
		o.DefaultNamespaces = map[string]cache.Config{}
		for _, namespace := range s.Namespaces {
			o.DefaultNamespaces[namespace] = cache.Config{}
		}
	}
	return o
}

// ClientOptions keeps the contents of ConfigMaps and Secrets out of the cache:
// only their metadata is watched.
func (s Scope) ClientOptions() client.Options {
	return client.Options{Cache: &client.CacheOptions{
		DisableFor: []client.Object{&corev1.ConfigMap{}, &corev1.Secret{}},
	}}
}

// LeaderElectionID differs between instances of different scopes, since they
// may run in one namespace.
func (s Scope) LeaderElectionID() string {
	if len(s.Namespaces) == 0 && s.WatchFilter == "" {
		return "controller-leader-election-chandler"
	}
	sum := sha256.Sum256([]byte(strings.Join(slices.Sorted(slices.Values(s.Namespaces)), ",") + "/" + s.WatchFilter))
	return "controller-leader-election-chandler-" + hex.EncodeToString(sum[:5])
}

// metadataOnly drops what a ConfigMap's or Secret's metadata may repeat of its
// content (kubectl's last-applied annotation).
func metadataOnly(in any) (any, error) {
	if obj, ok := in.(metav1.Object); ok {
		obj.SetManagedFields(nil)
		obj.SetAnnotations(nil)
	}
	return in, nil
}

func hasLabel(key string) labels.Selector {
	selector, err := labels.Parse(key)
	if err != nil {
		panic(err) // keys are constants of this program
	}
	return selector
}
