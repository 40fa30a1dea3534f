// SPDX-License-Identifier: Apache-2.0

// Package instance knows what one running instance of Chandler manages.
package instance

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	toolscache "k8s.io/client-go/tools/cache"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/message"
)

// Scope is what an instance manages: some namespaces or all, and objects
// with a value of the watch label, or any.
type Scope struct {
	// Namespaces is empty for all.
	Namespaces []string
	// WatchFilter is the value of label cluster.x-k8s.io/watch-filter, "" for any.
	WatchFilter string
}

// CacheOptions limits LIST and WATCH to the scope, at the server. With a watch filter, AddonStacks
// and revisions that are meant for all filters are in it. Keep returns what is kept of a ConfigMap or Secret: [Metadata] or [Version].
func (s Scope) CacheOptions(syncPeriod time.Duration, keep toolscache.TransformFunc) cache.Options {
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
			&addonsv1.AddonPlan{}:        {Label: own},
			&addonsv1.AddonStack{}:       {Label: stacks},
			&appsv1.ControllerRevision{}: {Label: revisions},
			&corev1.Secret{}:             {Transform: keep, SyncPeriod: new(time.Duration)}, // there may be many that nothing reads
			&corev1.ConfigMap{}:          {Transform: keep, SyncPeriod: new(time.Duration)},
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
	sum := sha256.Sum256([]byte(strings.Join(s.Canonical().Namespaces, ",") + "/" + s.WatchFilter))
	return "controller-leader-election-chandler-" + hex.EncodeToString(sum[:5])
}

// Version keeps of an object what tells its version: name, UID and resourceVersion. A namespace may have many ConfigMaps and Secrets
// that an instance never reads, and all of their metadata takes four times the memory.
func Version(in any) (any, error) {
	if o, ok := in.(*metav1.PartialObjectMetadata); ok {
		is := metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name, UID: o.UID, ResourceVersion: o.ResourceVersion}
		return &metav1.PartialObjectMetadata{TypeMeta: o.TypeMeta, ObjectMeta: is}, nil
	}
	return in, nil
}

// Metadata drops what a ConfigMap's or Secret's metadata may repeat of its
// content (kubectl's last-applied annotation).
func Metadata(in any) (any, error) {
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

// maxScopeLength bounds Scope.String: it is the bound of status.scope.
const maxScopeLength = 256

// maxNamedNamespaces bounds how many namespaces Scope.Describe names.
const maxNamedNamespaces = 3

// ScopeOf returns the scope that a ProviderInstance claims.
func ScopeOf(spec *addonsv1.ProviderInstanceSpec) Scope {
	return Scope{Namespaces: spec.Namespaces, WatchFilter: spec.WatchFilter}
}

// Canonical returns the scope with each namespace once, in order.
func (s Scope) Canonical() Scope {
	return Scope{Namespaces: slices.Compact(slices.Sorted(slices.Values(s.Namespaces))), WatchFilter: s.WatchFilter}
}

// Equal reports whether both scopes are of the same objects.
func (s Scope) Equal(other Scope) bool {
	a, b := s.Canonical(), other.Canonical()
	return a.WatchFilter == b.WatchFilter && slices.Equal(a.Namespaces, b.Namespaces)
}

// HasNamespace reports whether a namespace is in the scope.
func (s Scope) HasNamespace(name string) bool {
	return len(s.Namespaces) == 0 || slices.Contains(s.Namespaces, name)
}

// Overlaps reports whether an object can be in both scopes. AddonStacks with the label
// [addonsv1.SharedWatchFilter] don't count: they are meant for several instances.
func (s Scope) Overlaps(other Scope) bool {
	_, overlap := s.Intersection(other)
	return overlap
}

// Intersection returns the scope of the objects that are in both, and false if
// there can't be any.
func (s Scope) Intersection(other Scope) (Scope, bool) {
	a, b := s.Canonical(), other.Canonical()
	var shared Scope
	switch {
	case a.WatchFilter == "" || a.WatchFilter == b.WatchFilter:
		shared.WatchFilter = b.WatchFilter
	case b.WatchFilter == "":
		shared.WatchFilter = a.WatchFilter
	default:
		return Scope{}, false
	}
	switch {
	case len(a.Namespaces) == 0:
		shared.Namespaces = b.Namespaces
	case len(b.Namespaces) == 0:
		shared.Namespaces = a.Namespaces
	default:
		for _, namespace := range a.Namespaces {
			if _, found := slices.BinarySearch(b.Namespaces, namespace); found {
				shared.Namespaces = append(shared.Namespaces, namespace)
			}
		}
		if len(shared.Namespaces) == 0 { // would be all of them
			return Scope{}, false
		}
	}
	return shared, true
}

// String returns the namespaces as status.scope has them: "*", "team-a,team-b", or with the number
// of those that don't fit, as in "a,b,+12". The filter has a field of its own.
func (s Scope) String() string {
	namespaces := s.Canonical().Namespaces
	if len(namespaces) == 0 {
		return "*"
	}
	text := strings.Join(namespaces, ",")
	for named := len(namespaces) - 1; len(text) > maxScopeLength; named-- {
		text = fmt.Sprintf("%s,+%d", strings.Join(namespaces[:named], ","), len(namespaces)-named)
	}
	return text
}

// Describe returns the scope in words, for messages: "namespace team-a", or
// "objects with watch filter blue in namespaces a, b, c, and 2 more".
func (s Scope) Describe() string {
	namespaces := s.Canonical().Namespaces
	where := "all namespaces"
	if len(namespaces) == 1 {
		where = "namespace " + namespaces[0]
	} else if len(namespaces) > 1 {
		where = "namespaces " + message.List(namespaces, ", ", maxNamedNamespaces)
	}
	if s.WatchFilter == "" {
		return where
	}
	return fmt.Sprintf("objects with watch filter %s in %s", s.WatchFilter, where)
}
