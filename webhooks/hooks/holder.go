// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"slices"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/instance"
	"github.com/cluster-chandler/chandler/internal/upgrade"
)

// HolderOf reports whether an instance manages a ClusterAddon. A lost one is returned, too.
func HolderOf(ca *addonsv1.ClusterAddon, instances []addonsv1.ProviderInstance) (held bool, lost *upgrade.LostInstance) {
	for i := range instances {
		pi := &instances[i]
		scope := instance.ScopeOf(&pi.Spec)
		switch {
		case pi.Spec.Claim != addonsv1.ScopeClaiming || pi.Status.Grant == nil || pi.Status.Grant.State == addonsv1.GrantRefused:
		case scope.WatchFilter != "" && scope.WatchFilter != ca.Labels[clusterv1.WatchLabel]:
		case len(scope.Namespaces) > 0 && !slices.Contains(scope.Namespaces, ca.Namespace):
		case conditions.GetReason(pi, addonsv1.ReadyCondition) != addonsv1.HeartbeatExpiredReason:
			return true, nil
		default:
			held = true
			lost = &upgrade.LostInstance{Instance: client.ObjectKeyFromObject(pi).String(), Since: conditions.GetLastTransitionTime(pi, addonsv1.ReadyCondition).Time}
		}
	}
	return held, lost
}
