// SPDX-License-Identifier: Apache-2.0

package registration_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/yaml"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/instance/registration"
	"github.com/cluster-chandler/chandler/internal/instance/skew"
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

	h.install(asItIs, file("providerinstances"), file("clusteraddons"))
	h.Eventually(h.says(addonsv1.ReadyCondition)).WithTimeout(patience).Should(Equal("False APIVersionNotServed"), "now there is")
	h.Expect(conditions.Get(h.get(), addonsv1.APICompatibleCondition).Message).To(HavePrefix("The API server doesn't serve AddonStack of addons.cluster.x-k8s.io/v1beta1. Upgrade config/shared first"))

	h.install(without("classNames"), file("addonstacks"))
	h.Eventually(h.says(addonsv1.ReadyCondition)).WithTimeout(patience).Should(Equal("False APIFieldsMissing"))
	h.Expect(conditions.Get(h.get(), addonsv1.APICompatibleCondition).Message).To(ContainSubstring("don't have AddonStack.spec.classNames. Upgrade config/shared first"))
	h.Expect(h.get().Spec.Claim).To(Equal(addonsv1.ScopeWaiting), "it holds nothing meanwhile")

	h.install(asItIs, file("addonstacks"))
	h.Eventually(func() string { return conditions.Get(h.get(), addonsv1.APICompatibleCondition).Message }).WithTimeout(patience).
		Should(ContainSubstring("doesn't serve Cluster of cluster.x-k8s.io/v1beta2. Install Cluster API"))
	h.Expect(p.starts.Load()).To(BeZero())

	h.install(asItIs, clusterCRD)
	p.awaitWorking(patience, "all is there")
	h.Eventually(h.says(addonsv1.ReadyCondition)).WithTimeout(patience).Should(Equal("True Ready"))
	h.expectNothingForbidden()
}

// An instance is rolled before its CRDs are upgraded: the new process stands by, and says that it can't do without them. So
// the old one isn't ended.
func TestStandbyOfNewerRelease(t *testing.T) {
	long.InCI(t)
	t.Parallel()
	h := newHome(t, ownServer(t, crds, clusterCRD))
	old := h.start(withLease)
	old.awaitWorking(patience, "it has what it needs")
	h.install(without("classNames"), file("addonstacks"))
	server, err := discovery.NewDiscoveryClientForConfig(h.s.Config())
	h.Expect(err).NotTo(HaveOccurred())
	h.Eventually(func() ([]string, error) {
		gap, err := skew.Check(t.Context(), server.RESTClient(), addonsv1.GroupVersion, &addonsv1.AddonStack{})
		return gap.Fields, err
	}).WithTimeout(patience).ShouldNot(BeEmpty(), "the API server serves the older CRD")

	rolled := h.start(withLease)
	h.Eventually(func() error { return rolled.Ready(nil) }).WithTimeout(patience).Should(MatchError(ContainSubstring(addonsv1.APIFieldsMissingReason)))
	h.Consistently(func() error { return rolled.Ready(nil) }).WithTimeout(3 * time.Second).Should(MatchError(ContainSubstring("AddonStack.spec.classNames")))
	h.install(asItIs, file("addonstacks"))
	h.Eventually(func() error { return rolled.Ready(nil) }).WithTimeout(patience).Should(Succeed(), "the CRDs are upgraded")
	h.Expect(old.starts.Load()).To(Equal(int32(1)))
	h.Expect(rolled.starts.Load()).To(BeZero(), "the old one leads")
	h.expectNothingForbidden()
}

// The CRDs become newer than an instance that runs. It continues, and says so.
func TestCRDsBecomeNewer(t *testing.T) {
	long.InCI(t)
	t.Parallel()
	h := newHome(t, ownServer(t, crds, clusterCRD))
	p := h.start(func(o *registration.Options, _ *manager.Options) { o.Compare = 2 * time.Second })
	p.awaitWorking(patience, "it has what it needs")
	h.Expect(h.says(addonsv1.APICompatibleCondition)()).To(Equal("True APICompatible"))

	h.install(func(crd *apiextensionsv1.CustomResourceDefinition) {
		for i := range crd.Spec.Versions {
			crd.Spec.Versions[i].Schema.OpenAPIV3Schema.Properties["spec"].Properties["tomorrow"] = apiextensionsv1.JSONSchemaProps{Type: "string"}
		}
	}, file("addonstacks"))
	h.Eventually(h.says(addonsv1.APICompatibleCondition)).WithTimeout(patience).Should(Equal("True APIFieldsUnknown"))
	h.Expect(h.says(addonsv1.ReadyCondition)()).To(Equal("True Ready"))
	h.Expect(conditions.GetMessage(h.get(), addonsv1.ReadyCondition)).To(ContainSubstring("AddonStack.spec.tomorrow"), "kubectl get shows it")
	h.Eventually(h.events).WithTimeout(patience).Should(ContainElement(addonsv1.APIFieldsUnknownReason))
	h.Expect(p.Ready(nil)).To(Succeed())

	h.install(asItIs, file("addonstacks"))
	h.Eventually(h.says(addonsv1.APICompatibleCondition)).WithTimeout(patience).Should(Equal("True APICompatible"))
	h.Expect(p.starts.Load()).To(Equal(int32(1)))
	h.expectNothingForbidden()
}

// install installs CRDs of files, changed.
func (h *home) install(change func(*apiextensionsv1.CustomResourceDefinition), files ...string) {
	h.t.Helper()
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

func asItIs(*apiextensionsv1.CustomResourceDefinition) {}

// without makes a CRD that doesn't have a field of its spec.
func without(field string) func(*apiextensionsv1.CustomResourceDefinition) {
	return func(crd *apiextensionsv1.CustomResourceDefinition) {
		for i := range crd.Spec.Versions {
			spec := crd.Spec.Versions[i].Schema.OpenAPIV3Schema.Properties["spec"]
			delete(spec.Properties, field)
			spec.XValidations = nil // may be about the field
			crd.Spec.Versions[i].Schema.OpenAPIV3Schema.Properties["spec"] = spec
		}
	}
}

func file(resource string) string {
	return filepath.Join(crds, "addons.cluster.x-k8s.io_"+resource+".yaml")
}
