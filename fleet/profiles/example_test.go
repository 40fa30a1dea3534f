// SPDX-License-Identifier: Apache-2.0

package profiles_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"github.com/cluster-chandler/chandler/fleet"
	"github.com/cluster-chandler/chandler/fleet/fleettest"
	"github.com/cluster-chandler/chandler/fleet/internal/controlplane"
	"github.com/cluster-chandler/chandler/fleet/profiles"
)

func TestMain(m *testing.M) { controlplane.Main(m) }

// A ClusterProfile says where its cluster is. Its access provider says that a Secret has a kubeconfig with the user.
func Example() {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, inventoryv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			fmt.Println(err)
			return
		}
	}
	controlplane.Define("multicluster.x-k8s.io", "v1alpha1", "ClusterProfile", "clusterprofiles")
	config := controlplane.Config()
	controlplane.Create(scheme,
		&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "prod"},
			Data:       map[string][]byte{"config": fleettest.KubeconfigOf(config)},
		},
		&inventoryv1alpha1.ClusterProfile{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "prod"},
			Status: inventoryv1alpha1.ClusterProfileStatus{AccessProviders: []inventoryv1alpha1.AccessProvider{{
				Name: "kubeconfig-secretreader",
				Cluster: clientcmdv1.Cluster{
					Server: config.Host, CertificateAuthorityData: config.CAData,
					Extensions: []clientcmdv1.NamedExtension{{
						Name:      "client.authentication.k8s.io/exec",
						Extension: runtime.RawExtension{Raw: []byte(`{"name": "prod", "key": "config"}`)},
					}},
				},
			}}},
		})
	provider := fleet.NewProvider(fleet.Options{Sources: []fleet.Source{profiles.New(profiles.Options{})}, AllowLoopback: true})
	controlplane.Run(provider, scheme, "profiles#default/prod")
	// Output: profiles#default/prod: Connected
}
