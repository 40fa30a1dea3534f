// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// provideConfig makes bootstrap data, which nobody needs.
func (p *Provider) provideConfig(ctx context.Context, obj object) error {
	if err := p.createSecret(ctx, obj, obj.GetName(), []byte("#!/bin/true")); err != nil {
		return err
	}
	return p.setStatus(ctx, obj, map[string]any{
		"dataSecretName": obj.GetName(),
		"initialization": map[string]any{"dataSecretCreated": true},
	})
}

// provideMachine makes a Node, with a kubelet of the Machine's version.
func (p *Provider) provideMachine(ctx context.Context, obj object) error {
	owner := metav1.GetControllerOf(obj)
	server := p.Workload(obj.cluster)
	if owner == nil || owner.Kind != "Machine" || server == nil {
		return errLater
	}
	if err := p.pass(obj.cluster, NewMachines); err != nil {
		return err
	}
	machine := &clusterv1.Machine{}
	if err := p.client.Get(ctx, client.ObjectKey{Namespace: obj.GetNamespace(), Name: owner.Name}, machine); err != nil {
		return err
	}
	id := "local:///" + obj.GetName()
	node := &corev1.Node{Spec: corev1.NodeSpec{ProviderID: id}}
	node.Name = obj.GetName()
	node.Labels = map[string]string{corev1.LabelHostname: obj.GetName(), corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64"}
	// By this version Cluster API knows whether the worker is upgraded.
	node.Status.NodeInfo.KubeletVersion = machine.Spec.Version
	if err := server.Create(ctx, node); client.IgnoreAlreadyExists(err) != nil {
		return err
	}
	if set, _, _ := unstructured.NestedString(obj.Object, "spec", "providerID"); set != id {
		if err := unstructured.SetNestedField(obj.Object, id, "spec", "providerID"); err != nil {
			return err
		}
		if err := p.client.Update(ctx, obj.Unstructured); err != nil {
			return err
		}
	}
	return p.setStatus(ctx, obj, map[string]any{
		"initialization": map[string]any{"provisioned": true},
		"addresses":      []any{map[string]any{"type": "InternalIP", "address": "127.0.0.1"}},
	})
}

// deleteNode takes the machine out of its workload cluster, if that is still there.
func (p *Provider) deleteNode(ctx context.Context, obj object) error {
	server := p.Workload(obj.cluster)
	if server == nil {
		return nil
	}
	return client.IgnoreNotFound(server.Delete(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: obj.GetName()}}))
}
