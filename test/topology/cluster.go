// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// workerClass is the class of workers that a ClusterClass has.
const workerClass = "default"

// realVersions is the field of a control plane's spec that says whether its API server is of spec.version.
const realVersions = "realVersions"

// Class says what a ClusterClass is like.
type Class struct {
	Namespace, Name string
	// KubernetesVersions are those through which upgrades go, in order.
	KubernetesVersions []string
	// RealVersions has API servers be of the version that a Cluster asks for. By default they are as they were built,
	// whatever it asks for, and only their control plane's status says that version.
	RealVersions bool
}

// Objects are the ClusterClass and its templates, to be created in this order.
func (c Class) Objects() []client.Object {
	class := &clusterv1.ClusterClass{}
	class.Namespace, class.Name = c.Namespace, c.Name
	class.Spec.Infrastructure.TemplateRef = c.templateRef(LocalCluster)
	class.Spec.ControlPlane.TemplateRef = c.templateRef(LocalControlPlane)
	class.Spec.Workers.MachineDeployments = []clusterv1.MachineDeploymentClass{{
		Class:          workerClass,
		Bootstrap:      clusterv1.MachineDeploymentClassBootstrapTemplate{TemplateRef: c.templateRef(LocalConfig)},
		Infrastructure: clusterv1.MachineDeploymentClassInfrastructureTemplate{TemplateRef: c.templateRef(LocalMachine)},
	}}
	class.Spec.KubernetesVersions = c.KubernetesVersions
	return []client.Object{
		c.template(LocalCluster, map[string]any{}),
		c.template(LocalControlPlane, map[string]any{realVersions: c.RealVersions}),
		c.template(LocalConfig, map[string]any{}),
		c.template(LocalMachine, map[string]any{}),
		class,
	}
}

func (c Class) template(kind schema.GroupVersionKind, spec map[string]any) client.Object {
	obj := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"template": map[string]any{"spec": spec}}}}
	obj.SetGroupVersionKind(templateOf(kind))
	obj.SetNamespace(c.Namespace)
	obj.SetName(c.Name)
	return obj
}

func (c Class) templateRef(kind schema.GroupVersionKind) clusterv1.ClusterClassTemplateReference {
	return clusterv1.ClusterClassTemplateReference{APIVersion: kind.GroupVersion().String(), Kind: templateOf(kind).Kind, Name: c.Name}
}

// NewCluster returns a Cluster of a class, which isn't created yet.
func NewCluster(key client.ObjectKey, class, version string, workers int32) *clusterv1.Cluster {
	cluster := &clusterv1.Cluster{}
	cluster.Namespace, cluster.Name = key.Namespace, key.Name
	cluster.Spec.Topology = clusterv1.Topology{ClassRef: clusterv1.ClusterClassRef{Name: class}, Version: version}
	if workers > 0 {
		cluster.Spec.Topology.Workers.MachineDeployments = []clusterv1.MachineDeploymentTopology{
			{Class: workerClass, Name: "workers", Replicas: &workers},
		}
	}
	return cluster
}

// SetVersion asks for another version of Kubernetes.
func (e *Environment) SetVersion(ctx context.Context, key client.ObjectKey, version string) error {
	return e.SetClass(ctx, key, "", version)
}

// SetClass gives a Cluster another class, if that isn't empty, and another version of Kubernetes.
func (e *Environment) SetClass(ctx context.Context, key client.ObjectKey, class, version string) error {
	cluster := &clusterv1.Cluster{}
	if err := e.Get(ctx, key, cluster); err != nil {
		return err
	}
	before := cluster.DeepCopy()
	cluster.Spec.Topology.Version = version
	if class != "" {
		cluster.Spec.Topology.ClassRef.Name = class
	}
	return e.Patch(ctx, cluster, client.MergeFrom(before))
}
