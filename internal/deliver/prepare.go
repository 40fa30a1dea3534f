// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
)

// prepareBoth prepares CRDs of crds/ and objects of the manifest.
func (r *run) prepareBoth(crds, objects []*unstructured.Unstructured) (_, _ []*unstructured.Unstructured, err error) {
	if crds, err = r.prepare(crds); err != nil {
		return nil, nil, err
	}
	objects, err = r.prepare(objects)
	return crds, objects, err
}

// prepare returns copies of rendered objects as they are to be applied. Of
// objects with the same key, the last one counts.
func (r *run) prepare(rendered []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	r.scope.learn(rendered)
	objects := make([]*unstructured.Unstructured, 0, len(rendered))
	index := make(map[record.ObjectKey]int, len(rendered))
	for _, original := range rendered {
		o := original.DeepCopy()
		namespace, err := r.namespaceOf(o.GroupVersionKind(), o.GetNamespace())
		if err != nil {
			return nil, err
		}
		o.SetNamespace(namespace)
		leaveOut(o)
		label(o, r.release)
		if o.GroupVersionKind().GroupKind() == secretKind {
			encodeStringData(o)
		}
		if i, again := index[record.KeyOf(o)]; again {
			objects[i] = o
			continue
		}
		index[record.KeyOf(o)] = len(objects)
		objects = append(objects, o)
	}
	return objects, nil
}

// ofServer are the fields of metadata that API servers set. Exported objects have them.
var ofServer = []string{"creationTimestamp", "managedFields", "uid", "resourceVersion", "generation", "selfLink", "deletionTimestamp", "deletionGracePeriodSeconds"}

// leaveOut takes out of an object what isn't its author's to set, so that the add-on doesn't own it. These are a status,
// what API servers set, nulls, and the rules of an aggregated ClusterRole.
func leaveOut(o *unstructured.Unstructured) {
	delete(o.Object, "status")
	for _, field := range ofServer {
		unstructured.RemoveNestedField(o.Object, "metadata", field)
	}
	if o.GroupVersionKind().GroupKind() == clusterRoleKind && o.Object["aggregationRule"] != nil {
		delete(o.Object, "rules")
	}
	withoutNulls(o.Object)
}

// withoutNulls deletes the fields that are null: kubectl and Helm 3 leave them to their defaults, and server-side
// apply refuses them, or owns an empty map.
func withoutNulls(value any) {
	switch value := value.(type) {
	case map[string]any:
		for key, field := range value {
			if field == nil {
				delete(value, key)
			} else {
				withoutNulls(field)
			}
		}
	case []any:
		for _, item := range value {
			withoutNulls(item)
		}
	}
}

// encodeStringData moves stringData of a Secret to data: the server copies it there and
// forgets who set it, so that a key which the chart drops later would stay. What isn't
// right in it is left for the server to refuse.
func encodeStringData(o *unstructured.Unstructured) {
	texts, found, err := unstructured.NestedStringMap(o.Object, "stringData")
	if !found || err != nil {
		return
	}
	data, _, err := unstructured.NestedMap(o.Object, "data")
	if err != nil {
		return
	}
	if data == nil {
		data = make(map[string]any, len(texts))
	}
	for key, text := range texts {
		data[key] = base64.StdEncoding.EncodeToString([]byte(text))
	}
	o.Object["data"] = data
	delete(o.Object, "stringData")
}

// rescope prepares the objects anew if the cluster didn't know all of their kinds before.
// A CRD of a hook, or of another add-on, may have said since that a kind isn't
// namespaced.
func (r *run) rescope() error {
	if !r.s.unscoped {
		return nil
	}
	r.scope.unknown = false
	objects, err := r.prepare(r.s.objects)
	if err != nil {
		return err
	}
	r.s.objects, r.s.unscoped = objects, r.scope.unknown
	return nil
}

// entries returns the inventory of what the revision has, as far as kinds are known now.
func (r *run) entries() ([]record.Entry, error) {
	return r.normalize(entriesOf(r.s.crds, r.s.objects))
}

// label sets the labels that say which add-on an object belongs to. They are on the
// object itself, not on what it makes.
func label(o *unstructured.Unstructured, r Release) {
	labels := o.GetLabels()
	if labels == nil {
		labels = make(map[string]string, 2)
	}
	labels[addonsv1.AddonLabel] = r.Name
	labels[addonsv1.AddonNamespaceLabel] = r.Namespace
	o.SetLabels(labels)
}

// inventoryOf returns the inventory of a record, as far as kinds are known now.
func (r *run) inventoryOf(rec *record.Record) ([]record.Entry, error) {
	entries, err := rec.Inventory()
	if err != nil {
		return nil, err
	}
	return r.normalize(entries)
}

// normalize gives inventory entries the namespace that they have in the cluster:
// one in a manifest may lack it, or have one that means nothing.
func (r *run) normalize(entries []record.Entry) ([]record.Entry, error) {
	out := slices.Clone(entries)
	for i := range out {
		var err error
		if out[i].Namespace, err = r.namespaceOf(out[i].GroupVersionKind(), out[i].Namespace); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// namespaceOf returns the namespace of an object in the cluster: none if its kind isn't namespaced, and
// the release's if it names none.
func (r *run) namespaceOf(gvk schema.GroupVersionKind, named string) (string, error) {
	namespaced, known, err := r.scope.namespaced(gvk)
	if known && !namespaced {
		return "", err
	}
	return cmp.Or(named, r.release.Namespace), err
}

// ensureNamespace makes the release's namespace if it is missing and may be made.
// It isn't part of the inventory: it stays when the add-on goes.
func (r *run) ensureNamespace(ctx context.Context) error {
	name := r.release.Namespace
	if len(r.records) > 0 {
		return nil // the records are in it
	}
	ns := &metav1.PartialObjectMetadata{}
	ns.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	err := r.t.own().Get(ctx, client.ObjectKey{Name: name}, ns)
	switch {
	case err == nil && ns.DeletionTimestamp != nil:
		return r.refuse(ReasonNamespaceMissing, fmt.Sprintf("Namespace %s is being deleted", name))
	case err == nil:
		return nil
	case !apierrors.IsNotFound(err):
		return fmt.Errorf("looking for namespace %s: %w", name, err)
	case !r.want.CreateNamespace:
		return r.refuse(ReasonNamespaceMissing, fmt.Sprintf(
			"Namespace %s doesn't exist. Make it, or set the add-on's createNamespace to true", name))
	}
	made := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	err = r.t.Client.Create(ctx, made, client.FieldOwner(r.manager))
	r.wrote.Store(err == nil)
	if err == nil || apierrors.IsAlreadyExists(err) {
		return nil
	}
	switch f := r.failureOf(record.ObjectKey{Kind: namespaceKind.Kind, Name: name}, err); f.kind {
	case transient:
		return fmt.Errorf("making namespace %s: %w", name, err)
	case deferred:
		return r.refuseAs(addonsv1.AddonPending, f.reason, "The add-on's namespace can't be made: "+f.message)
	default:
		return r.refuse(f.reason, "The add-on's namespace can't be made: "+f.message)
	}
}

// Where Target.Client acts as a ServiceAccount, the manager still writes the records. So that
// nobody takes over the release of a namespace by it, or fills one, the ServiceAccount has to be
// allowed what the manager does there.

// mayKeepRecords refuses a release without a record of ours in a namespace in which the
// ServiceAccount may not create Secrets.
func (r *run) mayKeepRecords(ctx context.Context) error {
	if r.t.Own == nil || len(r.records) > 0 && r.isProven(r.records[0]) {
		return nil
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: r.release.Namespace, GenerateName: "chandler-"}}
	err := r.t.Client.Create(ctx, secret, client.DryRunAll, client.FieldOwner(r.manager))
	if apierrors.IsForbidden(err) {
		return r.refuse(ReasonForbidden, fmt.Sprintf(
			"ServiceAccount %s has to be allowed to create Secrets in namespace %s, where the release is recorded: %v", r.want.ServiceAccount, r.release.Namespace, err))
	}
	if err != nil {
		return fmt.Errorf("asking whether ServiceAccount %s may create Secrets in namespace %s: %w", r.want.ServiceAccount, r.release.Namespace, err)
	}
	return nil
}
