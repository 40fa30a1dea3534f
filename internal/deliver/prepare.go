// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
)

// ensureNamespace makes the release's namespace if it is missing and may be made.
// It isn't part of the inventory: it stays when the add-on is removed.
func (r revisionMaker) ensureNamespace(ctx context.Context) error {
	name := r.release.Namespace
	if len(r.records) > 0 {
		return nil // the records are in it
	}
	ns, err := r.scope.Metadata(ctx, r.t.own(), record.Entry{Version: "v1", Kind: object.NamespaceKind.Kind, Name: name})
	switch {
	case err == nil && ns.DeletionTimestamp != nil:
		return r.refuse(object.ReasonNamespaceMissing, fmt.Sprintf("Namespace %s is being deleted", name))
	case err == nil:
		return nil
	case !apierrors.IsNotFound(err):
		return fmt.Errorf("looking for namespace %s: %w", name, err)
	case !r.want.CreateNamespace:
		return r.refuse(object.ReasonNamespaceMissing, fmt.Sprintf(
			"Namespace %s doesn't exist. Make it, or set the add-on's createNamespace to true", name))
	}
	made := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	err = r.t.Client.Create(ctx, made, client.FieldOwner(r.scope.Manager()))
	if err == nil || apierrors.IsAlreadyExists(err) {
		return nil
	}
	phase := addonsv1.AddonFailed
	f := r.failureOf(record.ObjectKey{Kind: object.NamespaceKind.Kind, Name: name}, err)
	switch f.Kind {
	case object.Transient:
		return fmt.Errorf("making namespace %s: %w", name, err)
	case object.Deferred:
		phase = addonsv1.AddonPending
	}
	return r.refuseAs(phase, f.Reason, "The add-on's namespace can't be made: "+f.Message)
}

// Where Target.Client acts as a ServiceAccount, the manager still writes the records. So that
// nobody takes over the release of a namespace by it, or fills one, the ServiceAccount has to be
// allowed what the manager does there.

// mayKeepRecords refuses a release without a record of ours in a namespace in which the
// ServiceAccount may not create Secrets.
func (r revisionMaker) mayKeepRecords(ctx context.Context) error {
	if r.t.Own == nil || len(r.records) > 0 && r.isProven(r.records[0]) {
		return nil
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: r.release.Namespace, GenerateName: "chandler-"}}
	err := r.t.Client.Create(ctx, secret, client.DryRunAll, client.FieldOwner(r.scope.Manager()))
	if apierrors.IsForbidden(err) {
		return r.refuse(object.ReasonForbidden, fmt.Sprintf(
			"ServiceAccount %s has to be allowed to create Secrets in namespace %s, where the release is recorded: %v", r.want.ServiceAccount, r.release.Namespace, err))
	}
	if err != nil {
		return fmt.Errorf("asking whether ServiceAccount %s may create Secrets in namespace %s: %w", r.want.ServiceAccount, r.release.Namespace, err)
	}
	return nil
}
