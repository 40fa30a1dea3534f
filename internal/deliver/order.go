// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"cmp"
	"slices"

	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/cluster-chandler/chandler/internal/deliver/record"
)

var (
	crdKind         = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}
	namespaceKind   = schema.GroupKind{Kind: "Namespace"}
	secretKind      = schema.GroupKind{Kind: "Secret"}
	clusterRoleKind = schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}
	claimKind       = schema.GroupKind{Kind: "PersistentVolumeClaim"}
	volumeKind      = schema.GroupKind{Kind: "PersistentVolume"}
)

// installWaves are the kinds of each wave: an object is applied after those of
// the waves before, and together with those of its own. It is Helm's install
// order, with kinds joined that don't need each other.
var installWaves = [][]string{
	{"PriorityClass", "Namespace"},
	{"NetworkPolicy", "ResourceQuota", "LimitRange", "PodSecurityPolicy", "PodDisruptionBudget",
		"ServiceAccount", "Secret", "ConfigMap", "StorageClass", "PersistentVolume", "PersistentVolumeClaim"},
	{"CustomResourceDefinition"},
	{"ClusterRole", "Role"},
	{"ClusterRoleBinding", "RoleBinding"},
	{"Service"},
	{"DaemonSet", "Pod", "ReplicationController", "ReplicaSet", "Deployment", "HorizontalPodAutoscaler",
		"StatefulSet", "Job", "CronJob"},
	{"IngressClass", "Ingress", "APIService"},
	{"MutatingWebhookConfiguration"},
	{"ValidatingWebhookConfiguration"},
}

// waves groups objects for applying. Custom resources, and kinds that Helm
// doesn't rank, come last: after the CRDs that define them and the webhooks that
// default and check them.
func waves(objects []*unstructured.Unstructured) [][]*unstructured.Unstructured {
	grouped := make([][]*unstructured.Unstructured, len(installWaves)+1)
	for _, o := range objects {
		gk := o.GroupVersionKind().GroupKind()
		wave := slices.IndexFunc(installWaves, func(kinds []string) bool { return slices.Contains(kinds, gk.Kind) })
		if wave < 0 || !builtin(gk) {
			wave = len(installWaves)
		}
		grouped[wave] = append(grouped[wave], o)
	}
	return slices.DeleteFunc(grouped, func(w []*unstructured.Unstructured) bool { return len(w) == 0 })
}

// removal waves, in their order.
const (
	removeCustom     = iota // custom resources, while their controllers still run
	removeOrdinary          // everything else
	removeCRDs              // no custom resource is left of this add-on
	removeNamespaces        // nothing is left of this add-on
	removalWaveCount
)

// removalWaves groups entries for deletion, each wave in Helm's uninstall order.
func removalWaves(entries []record.Entry) [removalWaveCount][]record.Entry {
	var grouped [removalWaveCount][]record.Entry
	for _, e := range entries {
		gk := e.GroupVersionKind().GroupKind()
		wave := removeOrdinary
		switch {
		case gk == crdKind:
			wave = removeCRDs
		case gk == namespaceKind:
			wave = removeNamespaces
		case !builtin(gk):
			wave = removeCustom
		}
		grouped[wave] = append(grouped[wave], e)
	}
	for _, wave := range grouped {
		slices.SortStableFunc(wave, func(a, b record.Entry) int {
			return cmp.Compare(rank(releaseutil.UninstallOrder, a.Kind), rank(releaseutil.UninstallOrder, b.Kind))
		})
	}
	return grouped
}

// rank returns the place of a kind in Helm's order. Kinds that Helm doesn't rank come last.
func rank(order releaseutil.KindSortOrder, kind string) int {
	if i := slices.Index(order, kind); i >= 0 {
		return i
	}
	return len(order)
}

// builtin says whether a kind is part of Kubernetes itself.
func builtin(gk schema.GroupKind) bool {
	if gk == crdKind || gk.Group == "apiregistration.k8s.io" {
		return true
	}
	// Kinds of groups that Kubernetes has dropped are gone, too.
	return slices.ContainsFunc(scheme.Scheme.PrioritizedVersionsForGroup(gk.Group), func(version schema.GroupVersion) bool {
		return scheme.Scheme.Recognizes(version.WithKind(gk.Kind))
	})
}
