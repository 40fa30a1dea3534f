// SPDX-License-Identifier: Apache-2.0

package topology

import "sigs.k8s.io/controller-runtime/pkg/client"

// Point is something that the provider does, and that a test can hold.
type Point string

const (
	// ControlPlaneUpgrades change the API server's version, and then the control plane's status.
	ControlPlaneUpgrades Point = "ControlPlaneUpgrades"
	// NewMachines become Nodes.
	NewMachines Point = "NewMachines"
)

type hold struct {
	point   Point
	cluster client.ObjectKey
}

// Hold has a Cluster wait at a point until it is let go.
func (p *Provider) Hold(cluster client.ObjectKey, point Point) { p.setHeld(cluster, point, true) }

// Release lets it go on.
func (p *Provider) Release(cluster client.ObjectKey, point Point) { p.setHeld(cluster, point, false) }

func (p *Provider) setHeld(cluster client.ObjectKey, point Point, held bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held[hold{point: point, cluster: cluster}] = held
}

// pass fails while a Cluster is held at a point.
func (p *Provider) pass(cluster client.ObjectKey, point Point) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held[hold{point: point, cluster: cluster}] {
		return errLater
	}
	return nil
}
