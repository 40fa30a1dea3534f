// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
)

// showTheWay tells how to look around.
func (d *demo) showTheWay() error {
	kubectl := filepath.Join(d.binDir, "kubectl")
	if _, err := os.Stat(kubectl); err != nil {
		return fmt.Errorf("finding kubectl: %w", err)
	}
	first := d.members[0].name
	d.out.heading("Look around", "In another terminal:")
	for _, command := range []string{
		fmt.Sprintf("export PATH=%s:$PATH KUBECONFIG=%s", d.binDir, d.kubeconfig()),
		"kubectl get clusters,addonstacks,clusteraddons",
		"kubectl describe clusteraddon " + first,
	} {
		d.out.printf("  %s\n", command)
	}
	d.out.printf("\n  Each workload cluster is a context of its own. Add-ons are Helm releases there:\n\n")
	for _, m := range d.members {
		d.out.printf("  kubectl --context %s get deployments,services,pods -A\n", m.name)
	}
	d.out.printf("  helm --kube-context %s list -A   %s\n", first, d.out.paint(dim, "(with a helm of yours)"))
	d.out.printf("\nCtrl-C stops everything and removes it.\n")
	return nil
}
