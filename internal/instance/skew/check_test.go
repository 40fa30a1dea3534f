// SPDX-License-Identifier: Apache-2.0

package skew_test

import (
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/instance/skew"
	"github.com/cluster-chandler/chandler/test/apiserver"
	"github.com/cluster-chandler/chandler/test/controlplane"
	"github.com/cluster-chandler/chandler/test/long"
)

// TestCheck asks a real API server, as a user without any right, for CRDs that
// become older and older.
func TestCheck(t *testing.T) {
	long.InCI(t)
	if testing.Short() {
		t.Skip("starts an API server")
	}
	g := NewWithT(t)
	admin := apiserver.Own(t, controlplane.Options{Name: "skew", CRDPaths: []string{"../../../config/crd/bases"}})
	nobody, err := admin.AddUser("nobody")
	g.Expect(err).NotTo(HaveOccurred())
	reader, err := discovery.NewDiscoveryClientForConfig(nobody.Config)
	g.Expect(err).NotTo(HaveOccurred())

	check := func() (skew.Gap, error) {
		return skew.Check(t.Context(), reader.RESTClient(), addonsv1.GroupVersion, &addonsv1.AddonPlan{}, &addonsv1.AddonStack{}, &addonsv1.ClusterAddon{}, &addonsv1.ProviderInstance{})
	}
	expect := func(why string, matcher OmegaMatcher) {
		t.Helper()
		g.Eventually(check).WithTimeout(30*time.Second).WithPolling(100*time.Millisecond).Should(matcher, why)
	}
	edit := func(resource string, change func(*apiextensionsv1.CustomResourceDefinition)) {
		t.Helper()
		crd := &apiextensionsv1.CustomResourceDefinition{}
		g.Expect(admin.Get(t.Context(), client.ObjectKey{Name: resource + "." + addonsv1.GroupVersion.Group}, crd)).To(Succeed())
		change(crd)
		g.Expect(admin.Update(t.Context(), crd)).To(Succeed())
	}
	// An API server that opens the storage of a kind while it deletes the kind
	// may fail to look for instances, and tries again after minutes only.
	remove := func(resource, kind string) {
		t.Helper()
		instances := &metav1.PartialObjectMetadataList{}
		instances.SetGroupVersionKind(addonsv1.GroupVersion.WithKind(kind + "List"))
		g.Eventually(func() error { return admin.List(t.Context(), instances) }).WithTimeout(30 * time.Second).Should(Succeed())
		crd := &apiextensionsv1.CustomResourceDefinition{}
		crd.Name = resource + "." + addonsv1.GroupVersion.Group
		g.Expect(admin.Delete(t.Context(), crd)).To(Succeed())
	}
	expect("the CRDs of this checkout have the fields of its types", And(HaveField("Empty()", BeTrue()), HaveField("Unknown", BeEmpty())))

	edit("providerinstances", func(crd *apiextensionsv1.CustomResourceDefinition) {
		version := crd.Spec.Versions[slices.IndexFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == "v1beta1" })]
		spec, status := version.Schema.OpenAPIV3Schema.Properties["spec"], version.Schema.OpenAPIV3Schema.Properties["status"]
		delete(spec.Properties, "leaseName")
		spec.XValidations, version.Schema.OpenAPIV3Schema.XValidations = nil, nil // which name it
		clusters := status.Properties["clusters"]
		delete(clusters.Properties, "ready")
		clusters.Required = []string{"total"} // the instance writes both, and reads neither
		status.Properties["clusters"] = clusters
		version.Schema.OpenAPIV3Schema.Properties["spec"], version.Schema.OpenAPIV3Schema.Properties["status"] = spec, status
	})
	expect("one field is needed, and not there", HaveField("Fields", Equal([]string{"ProviderInstance.spec.leaseName"})))

	remove("providerinstances", "ProviderInstance")
	expect("the kind itself is new", HaveField("Kinds", Equal([]string{"ProviderInstance"})))

	remove("addonstacks", "AddonStack")
	remove("clusteraddons", "ClusterAddon")
	expect("nothing is installed", HaveField("Kinds", Equal([]string{"AddonStack", "ClusterAddon", "ProviderInstance"})))

	served, err := skew.Serves(t.Context(), reader.RESTClient(), apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	g.Expect(served, err).To(BeTrue())
	served, err = skew.Serves(t.Context(), reader.RESTClient(), addonsv1.GroupVersion.WithKind("AddonStack"))
	g.Expect(served, err).To(BeFalse())
}
