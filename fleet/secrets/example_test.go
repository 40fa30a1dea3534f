// SPDX-License-Identifier: Apache-2.0

package secrets_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/cluster-chandler/chandler/fleet"
	"github.com/cluster-chandler/chandler/fleet/fleettest"
	"github.com/cluster-chandler/chandler/fleet/internal/controlplane"
	"github.com/cluster-chandler/chandler/fleet/secrets"
)

func TestMain(m *testing.M) { controlplane.Main(m) }

// Each Secret with the label is a cluster. It may come and go while the manager runs.
func Example() {
	controlplane.Create(scheme.Scheme, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "prod", Labels: map[string]string{secrets.DefaultLabel: "true"}},
		Data:       map[string][]byte{secrets.DefaultKey: fleettest.KubeconfigOf(controlplane.Config())},
	})
	provider := fleet.NewProvider(fleet.Options{
		Sources:       []fleet.Source{secrets.New(secrets.Options{})},
		AllowLoopback: true, // for servers on this host alone
	})
	controlplane.Run(provider, nil, "secrets#default/prod")
	// Output: secrets#default/prod: Connected
}
