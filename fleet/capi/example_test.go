// SPDX-License-Identifier: Apache-2.0

package capi_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/cluster-chandler/chandler/fleet"
	"github.com/cluster-chandler/chandler/fleet/capi"
	"github.com/cluster-chandler/chandler/fleet/fleettest"
	"github.com/cluster-chandler/chandler/fleet/internal/controlplane"
)

func TestMain(m *testing.M) { controlplane.Main(m) }

// Clusters of Cluster API keep their own names. Their kubeconfigs are in the Secrets that Cluster API writes.
func Example() {
	controlplane.Define("cluster.x-k8s.io", "v1beta2", "Cluster", "clusters")
	controlplane.Create(scheme.Scheme,
		&unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": map[string]any{"namespace": "default", "name": "prod"},
		}},
		&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "prod-kubeconfig"},
			Data:       map[string][]byte{"value": fleettest.KubeconfigOf(controlplane.Config())},
		})
	provider := fleet.NewProvider(fleet.Options{Sources: []fleet.Source{capi.New(capi.Options{})}, AllowLoopback: true})
	controlplane.Run(provider, nil, "default/prod")
	// Output: default/prod: Connected
}
