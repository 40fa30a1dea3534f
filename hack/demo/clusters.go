// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/controlplane"
)

// startClusters starts all control planes side by side, with the CRDs of Cluster API and Chandler in the first.
func (d *demo) startClusters(ctx context.Context) error {
	return d.out.stage("4 control planes", func(*progress) (string, error) {
		if err := d.startPlanes(ctx); err != nil {
			return "", err
		}
		info, err := discovery.NewDiscoveryClientForConfigOrDie(d.management.Config()).ServerVersion()
		if err != nil {
			return "", err
		}
		return "Kubernetes " + info.GitVersion + ", with simulated nodes", d.connect()
	})
}

func (d *demo) startPlanes(ctx context.Context) error {
	crds, err := d.crds(ctx)
	if err != nil {
		return err
	}
	d.members = []*member{
		{name: "bergen", region: "north"},
		{name: "genoa", region: "south"},
		{name: "osaka", region: "east"},
	}
	options := []controlplane.Options{{Name: "management", Workers: true, CRDPaths: crds}}
	for _, m := range d.members {
		options = append(options, controlplane.Options{Name: m.name, Workers: true, Nodes: 3})
	}
	planes, err := controlplane.StartAll(ctx, options...)
	if err != nil {
		return err
	}
	d.management = planes[0]
	for i, m := range d.members {
		m.plane = planes[i+1]
	}
	return nil
}

// crds of Cluster API come from its module, which go.mod pins.
func (d *demo) crds(ctx context.Context) ([]string, error) {
	capi, err := goTool(ctx, d.root, "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/cluster-api")
	if err != nil {
		return nil, fmt.Errorf("finding Cluster API's CRDs: %w", err)
	}
	bases := filepath.Join(capi, "core", "config", "crd", "bases")
	return []string{
		filepath.Join(bases, "cluster.x-k8s.io_clusters.yaml"),
		filepath.Join(bases, "cluster.x-k8s.io_clusterclasses.yaml"),
		filepath.Join(d.root, "config", "crd", "bases"),
	}, nil
}

// connect makes the clients, and a kubeconfig with a context for each cluster.
func (d *demo) connect() error {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, clusterv1.AddToScheme, addonsv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	var err error
	if d.client, err = client.New(d.management.Config(), client.Options{Scheme: scheme}); err != nil {
		return err
	}
	for _, m := range d.members {
		if m.client, err = client.NewWithWatch(m.plane.Config(), client.Options{Scheme: scheme}); err != nil {
			return err
		}
	}
	return d.writeKubeconfig()
}

func (d *demo) kubeconfig() string { return filepath.Join(d.dir, "kubeconfig") }

// writeKubeconfig merges the clusters' kubeconfigs. The management cluster's context is the current one.
func (d *demo) writeKubeconfig() error {
	all := clientcmdapi.NewConfig()
	all.CurrentContext = d.management.Name()
	for _, plane := range d.planes() {
		one, err := clientcmd.Load(plane.Kubeconfig())
		if err != nil {
			return err
		}
		current := one.Contexts[one.CurrentContext]
		all.Clusters[current.Cluster] = one.Clusters[current.Cluster]
		all.AuthInfos[current.AuthInfo] = one.AuthInfos[current.AuthInfo]
		all.Contexts[plane.Name()] = current
	}
	data, err := clientcmd.Write(*all)
	if err != nil {
		return err
	}
	return os.WriteFile(d.kubeconfig(), data, 0o600)
}
