// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// The scope limits what the API server is asked for.
func TestCacheOptionsLimitRequests(t *testing.T) {
	o := Scope{Namespaces: []string{"a", "b"}, WatchFilter: "blue"}.CacheOptions(time.Hour)
	if len(o.DefaultNamespaces) != 2 {
		t.Errorf("namespaces: %v", o.DefaultNamespaces)
	}
	blue := labels.Set{clusterv1.WatchLabel: "blue"}
	for object, by := range o.ByObject {
		switch object.(type) {
		case *clusterv1.Cluster, *addonsv1.AddonStack, *addonsv1.ClusterAddon:
			if !by.Label.Matches(blue) || by.Label.Matches(labels.Set{}) {
				t.Errorf("%T is selected by %q", object, by.Label)
			}
		case *corev1.Secret, *corev1.ConfigMap:
			if by.Label != nil {
				t.Errorf("%T is limited by %q: people don't label what they refer to", object, by.Label)
			}
		default:
			if !by.Label.Matches(labels.Merge(blue, labels.Set{addonsv1.StackNameLabel: "s"})) || by.Label.Matches(labels.Set{addonsv1.StackNameLabel: "s"}) {
				t.Errorf("%T is selected by %q", object, by.Label)
			}
		}
	}
	if all := (Scope{}).CacheOptions(time.Hour); all.DefaultNamespaces != nil {
		t.Errorf("all namespaces: %v", all.DefaultNamespaces)
	}
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
	if a, b := (Scope{Namespaces: []string{"a", "b"}}), (Scope{Namespaces: []string{"b", "a"}}); a.LeaderElectionID() != b.LeaderElectionID() {
		t.Error("the order of namespaces makes a difference")
	}
}

func TestMetadataOnlyDropsCopiesOfContent(t *testing.T) {
	secret := &corev1.Secret{}
	secret.Annotations = map[string]string{corev1.LastAppliedConfigAnnotation: "everything"}
	if out, err := metadataOnly(secret); err != nil || len(out.(*corev1.Secret).Annotations) != 0 {
		t.Errorf("metadataOnly() = %v, %v", out, err)
	}
}
