// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	helmcommon "helm.sh/helm/v4/pkg/release/common"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
)

// plain finds the releases of workload clusters by their records, but for those of add-ons.
func (g *gathering) plain(ctx context.Context) error {
	for _, cluster := range g.asked {
		workload, err := g.workload(ctx, cluster)
		if err != nil {
			return fmt.Errorf("cluster %s: %w", cluster, err)
		}
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
		if err := workload.List(ctx, list, client.MatchingLabels{"owner": "helm"}); err != nil {
			return fmt.Errorf("cluster %s: listing the records of releases: %w", cluster, err)
		}
		for release, is := range record.Summarize(list.Items) {
			if is.Owned || is.Status == string(helmcommon.StatusUninstalled) || !g.isNamed(release.Name, release.String()) {
				continue
			}
			g.Releases = append(g.Releases, &Release{
				Cluster: cluster, Previous: release.Name, Selector: g.World.Clusters, storage: release.Namespace,
				Addon: addonsv1.Addon{Name: release.Name, Namespace: release.Namespace},
			})
		}
	}
	slices.SortFunc(g.Releases, func(a, b *Release) int { return cmp.Compare(a.String(), b.String()) })
	return nil
}
