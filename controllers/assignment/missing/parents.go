// SPDX-License-Identifier: Apache-2.0

package missing

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/retry"
)

// Discovery tells which kinds the management cluster offers.
type Discovery = discovery.ServerResourcesInterface

// parents are what an AddonStack is deleted with: our CRDs, and a namespace.
type parents struct {
	// intact says that none of them is being deleted, or gone.
	intact bool
	// since is when the CRD of AddonStacks was made, which none of them has outlived. Zero if that may not be read.
	since time.Time
}

// parentsIn returns the parents of stacks of a namespace, at most half a second old.
func (m *Stacks) parentsIn(ctx context.Context, namespace string) (parents, error) {
	if known, ok := m.parents.Get(namespace); ok {
		return known.(parents), nil
	}
	now, err := m.readParents(ctx, namespace)
	if err == nil {
		m.parents.Set(namespace, now, retry.Moment/2)
	}
	return now, err
}

func (m *Stacks) readParents(ctx context.Context, namespace string) (parents, error) {
	offered, err := m.discovery.ServerResourcesForGroupVersion(addonsv1.GroupVersion.String())
	switch {
	case apierrors.IsNotFound(err):
		return parents{}, nil
	case err != nil:
		return parents{}, fmt.Errorf("asking which kinds of %s there are: %w", addonsv1.GroupVersion, err)
	case !creatable(offered, "addonstacks"), !creatable(offered, "clusteraddons"):
		return parents{}, nil
	}
	ns := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: corev1.SchemeGroupVersion.String(), Kind: "Namespace"}}
	if err := m.reader.Get(ctx, client.ObjectKey{Name: namespace}, ns); err != nil {
		return parents{}, fmt.Errorf("looking whether namespace %s is being deleted: %w", namespace, err)
	}
	crd := &metav1.PartialObjectMetadata{}
	crd.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	if err := m.reader.Get(ctx, client.ObjectKey{Name: "addonstacks." + addonsv1.GroupVersion.Group}, crd); err != nil && !apierrors.IsForbidden(err) {
		return parents{}, fmt.Errorf("looking since when there are AddonStacks: %w", err)
	}
	return parents{intact: ns.DeletionTimestamp.IsZero(), since: crd.CreationTimestamp.Time}, nil
}

// creatable reports whether objects of a resource can be made: not while its CRD is being deleted.
func creatable(offered *metav1.APIResourceList, resource string) bool {
	return slices.ContainsFunc(offered.APIResources, func(r metav1.APIResource) bool {
		return r.Name == resource && slices.Contains(r.Verbs, "create")
	})
}
