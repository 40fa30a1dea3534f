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
	"k8s.io/apimachinery/pkg/selection"
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
// outside of it never reach this process. With a watch filter, AddonStacks (and
// their revisions) that are meant for all filters are in it.
func (s Scope) CacheOptions(syncPeriod time.Duration) cache.Options {
	own, stacks := labels.Everything(), labels.Everything()
	if s.WatchFilter != "" {
		own = labels.NewSelector().Add(requirement(clusterv1.WatchLabel, selection.Equals, s.WatchFilter))
		stacks = labels.NewSelector().Add(requirement(clusterv1.WatchLabel, selection.In, s.WatchFilter, addonsv1.SharedWatchFilter))
	}
	revisions := stacks.Add(requirement(addonsv1.StackNameLabel, selection.Exists))
	o := cache.Options{
		SyncPeriod:                  &syncPeriod,
		DefaultTransform:            cache.TransformStripManagedFields(),
		ReaderFailOnMissingInformer: false,
		ByObject: map[client.Object]cache.ByObject{
			&clusterv1.Cluster{}:         {Label: own},
			&addonsv1.ClusterAddon{}:     {Label: own},
			&addonsv1.AddonStack{}:       {Label: stacks},
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

func requirement(key string, operator selection.Operator, values ...string) labels.Requirement {
	r, err := labels.NewRequirement(key, operator, values)
	if err != nil {
		panic(err) // the flag was validated, all else are constants of this program
	}
	return *r
}
