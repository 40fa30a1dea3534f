// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/wait"
)

// A Cluster can name any object as its infrastructure. One of a kind that isn't namespaced,
// as an identity of a cloud, may be another team's: it isn't read, whatever the manager may.
func TestObjectsOutsideOfNamespacesAreNotRead(t *testing.T) {
	t.Parallel()
	tn := newTenant(t)
	const kind = "TestIdentity"
	tn.create(definitionOf(infraGroup, "v1", kind, apiextensionsv1.ClusterScoped))
	identity := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"externalID": "sentinel-of-another-team"}}}
	identity.SetAPIVersion(infraGroup + "/v1")
	identity.SetKind(kind)
	identity.SetName("another-teams-" + tn.namespace)
	wait.Until(t, patience, "the API server is to serve the CRD", func() error { return world.hub.Create(t.Context(), identity.DeepCopy()) })

	tn.allowEverywhere()
	tn.startManager()
	tn.makeCluster("prod", workloadServer(t, 0), nil, func(c *clusterv1.Cluster) {
		c.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: infraGroup, Kind: kind, Name: identity.GetName()}
	})
	tn.makeStack("settings", nil, tn.small("settings", withTemplate(`text: "{{ .InfraCluster.spec.externalID }}"`)))
	tn.awaitCluster("prod", "the object is refused", phase("settings", addonsv1.AddonFailed, "ProviderObjectRefused", kind))
}
