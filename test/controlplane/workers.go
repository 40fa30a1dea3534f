// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	_ "embed"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// PodFate annotates a pod that should not live happily: by default a pod becomes ready, and if a Job owns it completes.
const (
	PodFate    = "chandler.test/pod-fate"
	PodStuck   = "stuck"    // stays Pending
	PodNoImage = "no-image" // stays Pending, as its image can't be pulled
	PodFails   = "fails"    // ends with exit code 1; for pods of Jobs, as a ReplicaSet would replace it for ever
)

// stages tell kwok how nodes and pods live.
//
//go:embed stages.yaml
var stages []byte

// startWorkers returns when the cluster has its nodes and can run pods.
func (c *ControlPlane) startWorkers(ctx context.Context) error {
	if err := c.startControllerManager(); err != nil {
		return err
	}
	if err := c.startScheduler(); err != nil {
		return err
	}
	if err := c.startKwok(); err != nil {
		return err
	}
	client, err := c.client()
	if err != nil {
		return err
	}
	if err := c.createNodes(ctx, client); err != nil {
		return err
	}
	return c.wait(ctx, "waiting for the nodes", func(ctx context.Context) error { return c.canRunPods(ctx, client) })
}

func (c *ControlPlane) startControllerManager() error {
	kubeconfig, err := c.componentKubeconfig("kube-controller-manager")
	if err != nil {
		return err
	}
	_, err = c.run("kube-controller-manager",
		"--kubeconfig="+kubeconfig,
		"--secure-port=0",
		"--leader-elect=false",
		"--root-ca-file="+c.path(caCert),
		"--service-account-private-key-file="+c.path(serviceAccountKey),
		// Without a certificate to sign with, it watches no files: a host has few inotify instances.
		"--kube-api-qps=200",
		"--kube-api-burst=400",
		// A busy machine or a paused API server must not make nodes unready, whose pods would then be evicted.
		"--node-monitor-grace-period=24h",
	)
	return err
}

func (c *ControlPlane) startScheduler() error {
	kubeconfig, err := c.componentKubeconfig("kube-scheduler")
	if err != nil {
		return err
	}
	_, err = c.run("kube-scheduler",
		"--kubeconfig="+kubeconfig,
		"--secure-port=0",
		"--leader-elect=false",
	)
	return err
}

func (c *ControlPlane) startKwok() error {
	kubeconfig, err := c.componentKubeconfig("kwok")
	if err != nil {
		return err
	}
	if err := c.write("stages.yaml", stages); err != nil {
		return err
	}
	_, err = c.run("kwok",
		"--kubeconfig="+kubeconfig,
		"--config="+c.path("stages.yaml"),
		"--manage-all-nodes=true",
		"--node-lease-duration-seconds=600", // heartbeats that nobody watches; see the grace period
	)
	return err
}

func (c *ControlPlane) createNodes(ctx context.Context, client kubernetes.Interface) error {
	for i := range c.options.Nodes {
		name := fmt.Sprintf("node-%d", i)
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
			Name: name,
			Labels: map[string]string{
				corev1.LabelHostname:   name,
				corev1.LabelOSStable:   "linux",
				corev1.LabelArchStable: "amd64",
			},
		}}
		_, err := client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("creating node %s: %w", name, err)
		}
	}
	return nil
}

// canRunPods asks for what kwok and the controller-manager do last: nodes without the taint they are created with, and
// the default namespace's ServiceAccount.
func (c *ControlPlane) canRunPods(ctx context.Context, client kubernetes.Interface) error {
	_, err := client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
	if err != nil {
		return err
	}
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, node := range nodes.Items {
		if len(node.Spec.Taints) > 0 {
			return fmt.Errorf("node %s has the taint %s", node.Name, node.Spec.Taints[0].Key)
		}
	}
	return nil
}
