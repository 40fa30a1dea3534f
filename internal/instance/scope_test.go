// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// The scope limits what the API server is asked for.
func TestCacheOptionsLimitRequests(t *testing.T) {
	const (
		own       = "cluster.x-k8s.io/watch-filter=blue"
		stacks    = "cluster.x-k8s.io/watch-filter in (blue,shared)"
		revisions = "addons.cluster.x-k8s.io/stack,cluster.x-k8s.io/watch-filter in (blue,shared)"
	)
	filtered := Scope{Namespaces: []string{"a", "b"}, WatchFilter: "blue"}.CacheOptions(time.Hour, Version)
	all := Scope{}.CacheOptions(time.Hour, Version)
	if len(filtered.DefaultNamespaces) != 2 || all.DefaultNamespaces != nil {
		t.Errorf("namespaces: %v; with no flag: %v", filtered.DefaultNamespaces, all.DefaultNamespaces)
	}
	for kind, want := range map[string]struct{ filtered, all string }{
		"*v1beta2.Cluster":       {own, ""},
		"*v1beta1.ClusterAddon":  {own, ""},
		"*v1beta1.AddonStack":    {stacks, ""},
		"*v1.ControllerRevision": {revisions, addonsv1.StackNameLabel},
		"*v1.Secret":             {"", ""}, // people don't label what they refer to
		"*v1.ConfigMap":          {"", ""},
	} {
		if got := selectorOf(t, filtered, kind); got != want.filtered {
			t.Errorf("with a watch filter, %s is selected by %q; want %q", kind, got, want.filtered)
		}
		if got := selectorOf(t, all, kind); got != want.all {
			t.Errorf("without one, %s is selected by %q; want %q", kind, got, want.all)
		}
	}
}

func selectorOf(t *testing.T, o cache.Options, kind string) string {
	t.Helper()
	for object, by := range o.ByObject {
		if fmt.Sprintf("%T", object) != kind {
			continue
		}
		if by.Label == nil {
			return ""
		}
		return by.Label.String()
	}
	t.Fatalf("nothing is said of %s", kind)
	return ""
}

func TestLeaderElectionIDTellsScopesApart(t *testing.T) {
	scopes := []Scope{{}, {Namespaces: []string{"a"}}, {Namespaces: []string{"a", "b"}}, {WatchFilter: "a"}, {Namespaces: []string{"a"}, WatchFilter: "b"}}
	seen := map[string]Scope{}
	for _, s := range scopes {
		id := s.LeaderElectionID()
		if other, ok := seen[id]; ok {
			t.Errorf("%v and %v share lease %s", s, other, id)
		}
		seen[id] = s
	}
}

func TestMetadataOnlyDropsCopiesOfContent(t *testing.T) {
	secret := &corev1.Secret{}
	secret.Annotations = map[string]string{corev1.LastAppliedConfigAnnotation: "everything"}
	if out, err := Metadata(secret); err != nil || len(out.(*corev1.Secret).Annotations) != 0 {
		t.Errorf("Metadata() = %v, %v", out, err)
	}
}
