// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Where Target.Client acts as a ServiceAccount, the manager still writes the records. So that
// nobody takes over the release of a namespace by it, or fills one, the ServiceAccount has to be
// allowed what the manager does there.

// mayKeepRecords refuses a release without a record of ours in a namespace in which the
// ServiceAccount may not create Secrets.
func (r *run) mayKeepRecords(ctx context.Context) error {
	if r.t.Own == nil || len(r.records) > 0 && r.records[0].Owned {
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
