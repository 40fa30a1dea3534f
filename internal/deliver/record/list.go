// SPDX-License-Identifier: Apache-2.0

package record

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-chandler/chandler/fleet/budget"
)

// ListAll returns the records of releases in a namespace, the newest first. It reads metadata only: one request.
func ListAll(ctx context.Context, reader client.Reader, namespace string, names []string) (map[Release][]Summary, error) {
	is, err := labels.NewRequirement(helmNameLabel, selection.In, names)
	if err != nil {
		return nil, fmt.Errorf("listing the records of release %s/%s: %w", namespace, strings.Join(names, ", "), err)
	}
	ctx, release := budget.Holding(ctx) // until what is needed of the list was taken
	defer release()
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	if err := reader.List(ctx, list, client.InNamespace(namespace), client.MatchingLabelsSelector{Selector: labels.NewSelector().Add(*is)}); err != nil {
		return nil, fmt.Errorf("listing the records of release %s/%s: %w", namespace, strings.Join(names, ", "), err)
	}
	records := make(map[Release][]Summary)
	for i := range list.Items {
		if s, ok := SummaryOf(&list.Items[i].ObjectMeta); ok {
			records[s.Release] = append(records[s.Release], s)
		}
	}
	for _, of := range records {
		newestFirst(of)
	}
	return records, nil
}
