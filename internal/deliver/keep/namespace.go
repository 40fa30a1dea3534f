// SPDX-License-Identifier: Apache-2.0

package keep

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/cluster-chandler/chandler/fleet/budget"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
)

// namespaceInUse returns what a namespace holds, or may hold, that isn't this
// add-on's; "" if there is nothing.
func (k *Keeper) namespaceInUse(ctx context.Context, name string) (string, error) {
	kinds, unknown, err := k.namespacedKinds(ctx)
	if err != nil {
		return "", err
	}
	if unknown != "" {
		return fmt.Sprintf("may still hold objects of %s, an API that doesn't answer", unknown), nil
	}
	for _, gk := range kinds {
		first, err := k.firstOf(ctx, gk, name, func(m *metav1.PartialObjectMetadata) bool { return k.disposable(gk, m, kinds) })
		if apierrors.IsForbidden(err) {
			return fmt.Sprintf("may still hold objects of kind %s, which the kubeconfig's user may not list", gk), nil
		}
		if err != nil {
			return "", err
		}
		if first != "" {
			return fmt.Sprintf("still holds %s %s and maybe more", gk.Kind, first), nil
		}
	}
	return "", nil
}

// disposable reports whether an object doesn't keep its namespace. It may be this add-on's and
// not be wanted any more, or be one that each namespace has. Or its controller is in the
// namespace and counts itself: once that is gone, the object is about to follow.
func (k *Keeper) disposable(gk schema.GroupKind, m *metav1.PartialObjectMetadata, counted []schema.GroupKind) bool {
	switch {
	case m.DeletionTimestamp != nil:
		return true
	case object.OwnerOf(&m.ObjectMeta) == k.Scope.Release && object.ManagedBy(&m.ObjectMeta, k.Scope.Manager()):
		return !k.IsApplied(m.UID)
	case gk.Kind == "ServiceAccount" && m.Name == "default", gk.Kind == "ConfigMap" && m.Name == "kube-root-ca.crt":
		return true
	}
	controller := metav1.GetControllerOf(m)
	return controller != nil &&
		slices.Contains(counted, schema.FromAPIVersionAndKind(controller.APIVersion, controller.Kind).GroupKind())
}

// madeByKubernetes are kinds whose objects nobody would miss.
var madeByKubernetes = []schema.GroupKind{
	{Kind: "Event"}, {Group: "events.k8s.io", Kind: "Event"}, {Kind: "Endpoints"}, {Group: "discovery.k8s.io", Kind: "EndpointSlice"},
}

// namespacedKinds returns all kinds whose objects go with their namespace. Unknown
// is a version of an API that can't be discovered, "" if there is none.
func (k *Keeper) namespacedKinds(ctx context.Context) (kinds []schema.GroupKind, unknown string, err error) {
	ctx, release := budget.Holding(ctx) // until what is needed of the documents was taken
	defer release()
	client, err := k.Discovery(ctx)
	if err != nil {
		return nil, "", fmt.Errorf("discovering namespaced kinds: %w", err)
	}
	lists, err := client.ServerPreferredNamespacedResources()
	if failed := (*discovery.ErrGroupDiscoveryFailed)(nil); errors.As(err, &failed) {
		if unknown, err = k.silent(ctx, failed); unknown != "" || err != nil {
			return nil, unknown, err
		}
	}
	if err != nil {
		return nil, "", fmt.Errorf("discovering namespaced kinds: %w", err)
	}
	for _, list := range lists {
		for i := range list.APIResources {
			resource := &list.APIResources[i]
			gk := schema.FromAPIVersionAndKind(list.GroupVersion, resource.Kind).GroupKind()
			// A kind that can't be deleted, such as metrics, isn't kept anywhere.
			if strings.Contains(resource.Name, "/") || !slices.Contains(resource.Verbs, "list") || !slices.Contains(resource.Verbs, "delete") ||
				slices.Contains(madeByKubernetes, gk) || slices.Contains(kinds, gk) {
				continue
			}
			kinds = append(kinds, gk)
		}
	}
	return kinds, "", nil
}

// silent returns one of the versions of APIs that couldn't be discovered, "" if all of them
// are gone: discovery shows an API a while longer than it is there.
func (k *Keeper) silent(ctx context.Context, failed *discovery.ErrGroupDiscoveryFailed) (string, error) {
	for _, gv := range slices.SortedFunc(maps.Keys(failed.Groups), func(a, b schema.GroupVersion) int { return strings.Compare(a.String(), b.String()) }) {
		_, err := k.apiService(ctx, gv)
		switch {
		case err == nil:
			return gv.String(), nil
		case !object.IsGone(err):
			return "", fmt.Errorf("looking for API %s: %w", gv, err)
		}
	}
	return "", nil
}

// hasAPI reports whether a resource that the server doesn't know is to be served: there is a
// CRD of it, or its version is another server's. If not, its objects are gone with the CRD.
func (k *Keeper) hasAPI(ctx context.Context, resource schema.GroupVersionResource) (bool, error) {
	_, err := k.Scope.Metadata(ctx, k.Reader, record.Entry{
		Group: object.CRDKind.Group, Version: "v1", Kind: object.CRDKind.Kind, Name: resource.Resource + "." + resource.Group,
	})
	if !object.IsGone(err) {
		return err == nil, err
	}
	return k.IsAggregated(ctx, resource.GroupVersion())
}

// IsAggregated reports whether another API server than the cluster's own serves a version of an API.
func (k *Keeper) IsAggregated(ctx context.Context, gv schema.GroupVersion) (bool, error) {
	api, err := k.apiService(ctx, gv)
	if object.IsGone(err) {
		return false, nil
	}
	return err == nil && api.Labels[autoManaged] == "", err
}

// apiService reads the metadata of the APIService, which names the server of a version of an
// API.
func (k *Keeper) apiService(ctx context.Context, gv schema.GroupVersion) (*metav1.PartialObjectMetadata, error) {
	return k.Scope.Metadata(ctx, k.Reader, record.Entry{
		Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService", Name: gv.Version + "." + gv.Group,
	})
}

// autoManaged is a label of the APIServices that an API server makes for what it serves itself
// (k8s.io/kube-aggregator, autoregister.AutoRegisterManagedLabel).
const autoManaged = "kube-aggregator.kubernetes.io/automanaged"
