// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/internal/failure"
)

// LacksNamespace reports whether the release's namespace is to be made. The error is a [failure.Error] if it is missing otherwise.
func (m *Maker) LacksNamespace(ctx context.Context) (bool, error) {
	name := m.Want.Namespace
	if len(m.Past.Records) > 0 {
		return false, nil // the records are in it
	}
	ns, err := m.Applier.Scope.Metadata(ctx, m.Own, record.Entry{Version: "v1", Kind: object.NamespaceKind.Kind, Name: name})
	switch {
	case err == nil && ns.DeletionTimestamp != nil:
		return false, failure.New(object.ReasonNamespaceMissing, "Namespace %s is being deleted", name)
	case err == nil:
		return false, nil
	case !apierrors.IsNotFound(err):
		return false, fmt.Errorf("looking for namespace %s: %w", name, err)
	}
	return m.makesNamespace()
}

// makesNamespace reports whether a namespace that is missing is to be made.
func (m *Maker) makesNamespace() (bool, error) {
	if !m.Want.CreateNamespace {
		return false, failure.New(object.ReasonNamespaceMissing, "Namespace %s doesn't exist. Make it, or set the add-on's createNamespace to true", m.Want.Namespace)
	}
	return true, nil
}

// ensureNamespace makes the release's namespace if it is missing, which may be known, and may be made.
// It isn't part of the inventory: it stays when the add-on is removed.
func (m *Maker) ensureNamespace(ctx context.Context, isMissing bool) error {
	name := m.Want.Namespace
	lacks, err := m.makesNamespace()
	if !isMissing {
		lacks, err = m.LacksNamespace(ctx)
	}
	if !lacks {
		return err
	}
	made := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	err = m.Applier.Client.Create(ctx, made, client.FieldOwner(m.Applier.Scope.Manager()))
	if err == nil || apierrors.IsAlreadyExists(err) {
		return nil
	}
	f := m.Past.Hidden.FailureOf(record.ObjectKey{Kind: object.NamespaceKind.Kind, Name: name}, err)
	if f.Kind == object.Transient {
		return fmt.Errorf("making namespace %s: %w", name, err)
	}
	refusal := failure.New(f.Reason, "The add-on's namespace can't be made: %s", f.Message)
	refusal.Wait = f.Kind == object.Deferred
	return refusal
}

// Where the add-on's client acts as a ServiceAccount, the manager still writes the records. So that
// nobody takes over the release of a namespace by it, or fills one, the ServiceAccount has to be
// allowed what the manager does there.

// MayKeepRecords refuses a release without a record of ours in a namespace in which the
// ServiceAccount may not create Secrets.
func (m *Maker) MayKeepRecords(ctx context.Context) error {
	if !m.IsImpersonated || len(m.Past.Records) > 0 && m.Past.IsProven(m.Past.Records[0]) {
		return nil
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: m.Want.Namespace, GenerateName: "chandler-"}}
	err := m.Applier.Client.Create(ctx, secret, client.DryRunAll, client.FieldOwner(m.Applier.Scope.Manager()))
	if apierrors.IsForbidden(err) {
		return failure.New(object.ReasonForbidden, "ServiceAccount %s has to be allowed to create Secrets in namespace %s, where the release is recorded: %v", m.Want.ServiceAccount, m.Want.Namespace, err)
	}
	if err != nil {
		return fmt.Errorf("asking whether ServiceAccount %s may create Secrets in namespace %s: %w", m.Want.ServiceAccount, m.Want.Namespace, err)
	}
	return nil
}
