// SPDX-License-Identifier: Apache-2.0

// Package keep tells which objects of an add-on stay in the cluster though the add-on no longer has them, and why.
package keep

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
)

// Keeper looks at what an add-on has in one cluster.
type Keeper struct {
	// Reader reads metadata, PersistentVolumes, CRDs and instances of kinds, with the manager's rights.
	Reader client.Reader
	// Discovery returns a client that tells which kinds there are.
	Discovery func(context.Context) (discovery.DiscoveryInterface, error)
	Scope     *object.Scope
	// DataPolicy is the add-on's.
	DataPolicy addonsv1.DataPolicy
	// IsApplied reports whether the object with a UID is one that the add-on has applied, and still has.
	IsApplied func(types.UID) bool
	// Goes reports whether an instance of a CRD is deleted before the CRD is. Nil: all that were are gone by now.
	Goes func(record.ObjectKey) bool
}

// Decide returns whether an object of which these facts are known stays, and why if people are to know that. One that is disowned
// for what it holds is marked as kept.
func (k *Keeper) Decide(ctx context.Context, f Facts, live *metav1.PartialObjectMetadata) (verdict Verdict, why string, marked bool, err error) {
	if verdict, why = f.Decide(); verdict != Unsure {
		return verdict, why, false, nil
	}
	if why, err = k.Reason(ctx, f.Entry, live); why == "" && err == nil {
		return Goes, "", false, nil
	}
	return Disowned, why, true, err
}

// Reason returns why an object of this add-on stays in the cluster, "" if it is deleted.
func (k *Keeper) Reason(ctx context.Context, e record.Entry, live *metav1.PartialObjectMetadata) (string, error) {
	gk := e.GroupVersionKind().GroupKind()
	keepsData := k.DataPolicy != addonsv1.DataPolicyDelete
	switch {
	case e.CRD:
		return "is from the chart's crds/ directory, whose CustomResourceDefinitions are never deleted", nil
	case live.Annotations[record.ResourcePolicyAnnotation] == record.ResourcePolicyKeep:
		return "is kept by its annotation " + record.ResourcePolicyAnnotation, nil
	case keepsData && gk == object.ClaimKind:
		return "holds data, and is kept by the add-on's dataPolicy", nil
	case keepsData && gk == object.VolumeKind:
		return k.volumeInUse(ctx, e)
	case gk == object.CRDKind:
		return k.crdInUse(ctx, e)
	case gk == object.NamespaceKind && e.Name == k.Scope.Release.Namespace:
		return "holds the release record", nil
	case gk == object.NamespaceKind && object.IsOfKubernetes(e.Name):
		return "is one of Kubernetes' own", nil
	case keepsData && gk == object.NamespaceKind:
		return "is kept by the add-on's dataPolicy", nil
	case gk == object.NamespaceKind:
		return k.namespaceInUse(ctx, e.Name)
	}
	return "", nil
}

// volumeInUse says so if a PersistentVolume is bound to a claim that is there: it would never be gone.
func (k *Keeper) volumeInUse(ctx context.Context, e record.Entry) (string, error) {
	volume := &corev1.PersistentVolume{}
	if err := k.Reader.Get(ctx, client.ObjectKey{Name: e.Name}, volume); err != nil || volume.Spec.ClaimRef == nil {
		return "", client.IgnoreNotFound(err)
	}
	of := volume.Spec.ClaimRef
	claim, err := k.Scope.Metadata(ctx, k.Reader, record.Entry{
		Version: "v1", Kind: object.ClaimKind.Kind, Namespace: of.Namespace, Name: of.Name,
	})
	if err != nil || claim.UID != of.UID || claim.DeletionTimestamp != nil {
		return "", client.IgnoreNotFound(err)
	}
	return fmt.Sprintf("holds the data of PersistentVolumeClaim %s/%s", of.Namespace, of.Name), nil
}

// crdInUse says so if there are instances of a CRD, or if none can be listed as they can't be converted. The instances
// of this add-on are gone by now.
func (k *Keeper) crdInUse(ctx context.Context, e record.Entry) (string, error) {
	crd := &unstructured.Unstructured{}
	crd.SetGroupVersionKind(e.GroupVersionKind())
	if err := k.Reader.Get(ctx, client.ObjectKey{Name: e.Name}, crd); err != nil {
		return "", client.IgnoreNotFound(err)
	}
	group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "kind")
	gk := schema.GroupKind{Group: group, Kind: kind}
	first, err := k.firstOf(ctx, gk, "", func(m *metav1.PartialObjectMetadata) bool {
		return k.Goes != nil && k.Goes(record.ObjectKey{Group: group, Kind: kind, Namespace: m.Namespace, Name: m.Name})
	})
	if status, _ := object.AnswerOf(err); object.WebhookUnavailable(status) {
		return fmt.Sprintf("may still have instances: %s can't be listed without its conversion webhook", kind), nil
	}
	if err != nil || first == "" {
		return "", err
	}
	return fmt.Sprintf("still has instances: %s %s and maybe more", kind, first), nil
}

// firstOf returns the first object of a kind that isn't to be ignored, "" if there
// is none. An empty namespace means all.
func (k *Keeper) firstOf(ctx context.Context, gk schema.GroupKind, namespace string, ignore func(*metav1.PartialObjectMetadata) bool) (string, error) {
	mapping, err := k.Scope.Mapper.RESTMapping(gk)
	if meta.IsNoMatchError(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("looking up kind %s: %w", gk.Kind, err)
	}
	list := &metav1.PartialObjectMetadataList{}
	for {
		list.SetGroupVersionKind(mapping.GroupVersionKind.GroupVersion().WithKind(gk.Kind + "List"))
		if err := k.Reader.List(ctx, list, client.InNamespace(namespace), client.Limit(100), client.Continue(list.Continue)); err != nil {
			if apierrors.IsNotFound(err) {
				if there, err := k.hasAPI(ctx, mapping.Resource); !there {
					return "", err
				}
			}
			return "", fmt.Errorf("listing %s: %w", gk.Kind, err)
		}
		for i := range list.Items {
			if m := &list.Items[i]; !ignore(m) {
				if m.Namespace != "" && namespace == "" {
					return m.Namespace + "/" + m.Name, nil
				}
				return m.Name, nil
			}
		}
		if list.Continue == "" {
			return "", nil
		}
	}
}
