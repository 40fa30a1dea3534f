// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/url"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/kubeconfig"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-chandler/chandler/test/controlplane"
)

// addClusters does what Cluster API does for clusters whose control plane has just come up.
func (d *demo) addClusters(ctx context.Context) error {
	for _, m := range d.members {
		if err := d.addCluster(ctx, m); err != nil {
			return fmt.Errorf("adding Cluster %s: %w", m.name, err)
		}
	}
	return nil
}

func (d *demo) addCluster(ctx context.Context, m *member) error {
	endpoint, err := endpointOf(m.plane)
	if err != nil {
		return err
	}
	cluster := &clusterv1.Cluster{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace,
			Name:      m.name,
			Labels:    map[string]string{"env": "prod", "region": m.region},
		},
		Spec: clusterv1.ClusterSpec{
			ClusterNetwork: clusterv1.ClusterNetwork{
				Pods:          clusterv1.NetworkRanges{CIDRBlocks: []string{"192.168.0.0/16"}},
				Services:      clusterv1.NetworkRanges{CIDRBlocks: []string{"10.96.0.0/16"}},
				ServiceDomain: "cluster.local",
			},
			ControlPlaneEndpoint: endpoint,
			// Nobody reads these: no template of the demo's add-ons refers to .ControlPlane or .InfraCluster.
			ControlPlaneRef: clusterv1.ContractVersionedObjectReference{
				APIGroup: "controlplane.cluster.x-k8s.io", Kind: "KubeadmControlPlane", Name: m.name + "-control-plane",
			},
			InfrastructureRef: clusterv1.ContractVersionedObjectReference{
				APIGroup: "infrastructure.cluster.x-k8s.io", Kind: "DockerCluster", Name: m.name,
			},
		},
	}
	if err := d.client.Create(ctx, cluster); err != nil {
		return err
	}
	if err := d.client.Create(ctx, kubeconfig.GenerateSecret(cluster, m.plane.Kubeconfig())); err != nil {
		return err
	}
	before := cluster.DeepCopy()
	cluster.Status.SetTypedPhase(clusterv1.ClusterPhaseProvisioned)
	cluster.Status.Initialization = clusterv1.ClusterInitializationStatus{
		InfrastructureProvisioned: ptr.To(true),
		ControlPlaneInitialized:   ptr.To(true),
	}
	return d.client.Status().Patch(ctx, cluster, client.MergeFrom(before))
}

func endpointOf(plane *controlplane.ControlPlane) (clusterv1.APIEndpoint, error) {
	address, err := url.Parse(plane.Config().Host)
	if err != nil {
		return clusterv1.APIEndpoint{}, err
	}
	port, err := strconv.ParseInt(address.Port(), 10, 32)
	return clusterv1.APIEndpoint{Host: address.Hostname(), Port: int32(port)}, err
}
