// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/long"
)

// An instance that starts before the CRDs it needs: first there are none, then
// those of an older release, then the right ones.
func TestCRDsComeLater(t *testing.T) {
	long.Test(t)
	t.Parallel()
	h := newHome(t, ownServer(t))
	p := h.start()
	h.Eventually(func() error { return p.Ready(nil) }).WithTimeout(patience).Should(MatchError(ContainSubstring("APIVersionNotServed")), "there is no object to say it in")
	install := func(change func(*apiextensionsv1.CustomResourceDefinition), files ...string) {
		t.Helper()
		for _, file := range files {
			data, err := os.ReadFile(file)
			h.Expect(err).NotTo(HaveOccurred())
			crd := &apiextensionsv1.CustomResourceDefinition{}
			h.Expect(yaml.Unmarshal(data, crd)).To(Succeed())
			change(crd)
			_, err = envtest.InstallCRDs(h.s.Config(), envtest.CRDInstallOptions{CRDs: []*apiextensionsv1.CustomResourceDefinition{crd}})
			h.Expect(err).NotTo(HaveOccurred())
		}
	}
	asItIs := func(*apiextensionsv1.CustomResourceDefinition) {}
	file := func(resource string) string {
		return filepath.Join(crds, "addons.cluster.x-k8s.io_"+resource+".yaml")
	}

	install(asItIs, file("providerinstances"), file("clusteraddons"))
	h.Eventually(h.says(addonsv1.ReadyCondition)).WithTimeout(patience).Should(Equal("False APIVersionNotServed"), "now there is")
	h.Expect(conditions.Get(h.get(), addonsv1.APICompatibleCondition).Message).To(HavePrefix("The API server doesn't serve AddonStack of addons.cluster.x-k8s.io/v1beta1. Upgrade config/shared first"))

	install(func(crd *apiextensionsv1.CustomResourceDefinition) {
		for i := range crd.Spec.Versions {
			spec := crd.Spec.Versions[i].Schema.OpenAPIV3Schema.Properties["spec"]
			delete(spec.Properties, "classNames")
			spec.XValidations = nil // may be about the field
			crd.Spec.Versions[i].Schema.OpenAPIV3Schema.Properties["spec"] = spec
		}
	}, file("addonstacks"))
	h.Eventually(h.says(addonsv1.ReadyCondition)).WithTimeout(patience).Should(Equal("False APIFieldsMissing"))
	h.Expect(conditions.Get(h.get(), addonsv1.APICompatibleCondition).Message).To(ContainSubstring("don't have AddonStack.spec.classNames. Upgrade config/shared first"))
	h.Expect(h.get().Spec.Claim).To(Equal(addonsv1.ScopeWaiting), "it holds nothing meanwhile")

	install(asItIs, file("addonstacks"))
	h.Eventually(func() string { return conditions.Get(h.get(), addonsv1.APICompatibleCondition).Message }).WithTimeout(patience).
		Should(ContainSubstring("doesn't serve Cluster of cluster.x-k8s.io/v1beta2. Install Cluster API"))
	h.Expect(p.starts.Load()).To(BeZero())

	install(asItIs, clusterCRD)
	p.awaitWorking(patience, "all is there")
	h.Eventually(h.says(addonsv1.ReadyCondition)).WithTimeout(patience).Should(Equal("True Ready"))
	h.expectNothingForbidden()
}
