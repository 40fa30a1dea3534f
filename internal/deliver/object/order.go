// SPDX-License-Identifier: Apache-2.0

package object

import (
	"cmp"
	"slices"

	"golang.org/x/sync/errgroup"
	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/cluster-chandler/chandler/internal/deliver/contained"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
)

// Kinds that are treated otherwise than others.
var (
	CRDKind         = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}
	NamespaceKind   = schema.GroupKind{Kind: "Namespace"}
	SecretKind      = schema.GroupKind{Kind: "Secret"}
	clusterRoleKind = schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}
	ClaimKind       = schema.GroupKind{Kind: "PersistentVolumeClaim"}
	VolumeKind      = schema.GroupKind{Kind: "PersistentVolume"}
)

// installWaves are the kinds of each wave: an object is applied after those of
// the waves before, and together with those of its own. It is Helm's install
// order, with kinds joined that don't need each other. Each wave is a round trip.
var installWaves = [][]string{
	{"PriorityClass", "Namespace"},
	{"NetworkPolicy", "ResourceQuota", "LimitRange", "PodSecurityPolicy", "PodDisruptionBudget",
		"ServiceAccount", "Secret", "ConfigMap", "StorageClass", "PersistentVolume", "PersistentVolumeClaim", "ClusterRole", "Role"},
	{"CustomResourceDefinition"},
	{"ClusterRoleBinding", "RoleBinding", "Service"},
	{"DaemonSet", "Pod", "ReplicationController", "ReplicaSet", "Deployment", "HorizontalPodAutoscaler",
		"StatefulSet", "Job", "CronJob", "IngressClass"},
	{"Ingress", "APIService"},
	{"MutatingWebhookConfiguration"},
	{"ValidatingWebhookConfiguration"},
}

// Waves groups objects for applying. Custom resources, and kinds that Helm
// doesn't rank, come last: after the CRDs that define them and the webhooks that
// default and check them.
func Waves(objects []*unstructured.Unstructured) [][]*unstructured.Unstructured {
	grouped := make([][]*unstructured.Unstructured, len(installWaves)+1)
	for _, o := range objects {
		gk := o.GroupVersionKind().GroupKind()
		wave := slices.IndexFunc(installWaves, func(kinds []string) bool { return slices.Contains(kinds, gk.Kind) })
		if wave < 0 || !IsBuiltin(gk) {
			wave = len(installWaves)
		}
		grouped[wave] = append(grouped[wave], o)
	}
	return slices.DeleteFunc(grouped, func(w []*unstructured.Unstructured) bool { return len(w) == 0 })
}

// RemovalWaves groups entries for deletion, each wave in Helm's uninstall order. Custom resources come first, while their
// controllers still run. CRDs follow once no custom resource is left of the add-on, and namespaces once nothing is.
func RemovalWaves(entries []record.Entry) [][]record.Entry {
	var custom, ordinary, crds, namespaces []record.Entry
	for _, e := range entries {
		switch gk := e.GroupVersionKind().GroupKind(); {
		case gk == CRDKind:
			crds = append(crds, e)
		case gk == NamespaceKind:
			namespaces = append(namespaces, e)
		case !IsBuiltin(gk):
			custom = append(custom, e)
		default:
			ordinary = append(ordinary, e)
		}
	}
	waves := [][]record.Entry{custom, ordinary, crds, namespaces}
	for _, wave := range waves {
		slices.SortStableFunc(wave, func(a, b record.Entry) int {
			return cmp.Compare(Rank(releaseutil.UninstallOrder, a.Kind), Rank(releaseutil.UninstallOrder, b.Kind))
		})
	}
	return waves
}

// Rank returns the place of a kind in Helm's order. Kinds that Helm doesn't rank come last.
func Rank(order releaseutil.KindSortOrder, kind string) int {
	if i := slices.Index(order, kind); i >= 0 {
		return i
	}
	return len(order)
}

// IsBuiltin says whether a kind is part of Kubernetes itself.
func IsBuiltin(gk schema.GroupKind) bool {
	if gk == CRDKind || gk.Group == "apiregistration.k8s.io" {
		return true
	}
	// Kinds of groups that Kubernetes has dropped are gone, too.
	return slices.ContainsFunc(scheme.Scheme.PrioritizedVersionsForGroup(gk.Group), func(version schema.GroupVersion) bool {
		return scheme.Scheme.Recognizes(version.WithKind(gk.Kind))
	})
}

// maxParallel is the number of objects of an add-on that are written at the same time.
const maxParallel = 6

// InParallel calls f for 0 to n-1, and returns what failed, in that order. It panics if
// one of them does.
func InParallel(n int, f func(int) *Failure) Failures {
	results := make(Failures, n)
	group := contained.Group{Group: &errgroup.Group{}}
	group.SetLimit(maxParallel)
	for i := range n {
		group.Go(func() error {
			results[i] = f(i)
			return nil
		})
	}
	_ = group.Wait() // failures are told for each object
	return slices.DeleteFunc(results, func(f *Failure) bool { return f == nil })
}
