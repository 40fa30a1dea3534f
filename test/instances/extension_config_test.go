// SPDX-License-Identifier: Apache-2.0

package instances

import (
	"crypto/tls"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	runtimecatalog "sigs.k8s.io/cluster-api/api/runtime/catalog"
	hooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/cluster-chandler/chandler/test/apiserver"
	"github.com/cluster-chandler/chandler/test/kustomization"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/manager"
	"github.com/cluster-chandler/chandler/webhooks/hooks"
)

// TestExtensionConfigGoesWithChandler uninstalls Chandler without a thought of its ExtensionConfig. The webhooks have seen
// to it that the garbage collector deletes it. They may change nothing else of it.
func TestExtensionConfigGoesWithChandler(t *testing.T) {
	long.InCI(t)
	t.Parallel()
	g := NewWithT(t)
	w := newWorld(t, worldOptions{workers: true})
	module, err := apiserver.ModuleDir(t.Context(), "sigs.k8s.io/cluster-api")
	g.Expect(err).NotTo(HaveOccurred())
	_, err = envtest.InstallCRDs(w.Config(), envtest.CRDInstallOptions{Paths: []string{filepath.Join(module, "core/config/crd/bases/runtime.cluster.x-k8s.io_extensionconfigs.yaml")}, MaxTime: patience})
	g.Expect(err).NotTo(HaveOccurred())
	dir := t.TempDir()
	g.Expect(kustomization.WriteFiles(shared.root, dir, map[string]string{"hooks/kustomization.yaml": `apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources: [../config/shared]
components: [../config/hooks]
`})).To(Succeed())
	objects := build(t, dir+"/hooks")
	w.apply(objects)
	deployment := deploymentIn(t, objects)
	deployment.Spec.Replicas = ptr.To[int32](1)
	address := manager.FreeAddress(t)
	_, port, err := net.SplitHostPort(address)
	g.Expect(err).NotTo(HaveOccurred())
	w.startWebhooks(deployment, "--hook-port="+port)

	config := &runtimev1.ExtensionConfig{}
	owners := func() ([]string, error) {
		err := w.Get(t.Context(), client.ObjectKey{Name: hooks.ExtensionConfigName}, config)
		var names []string
		for _, owner := range config.OwnerReferences {
			names = append(names, owner.Kind+" "+owner.Name)
		}
		return names, err
	}
	isOwned := Equal([]string{"ClusterRole chandler-webhooks"})
	g.Eventually(owners, patience).Should(isOwned, "at the start")

	again := config.DeepCopy()
	again.ResourceVersion, again.UID, again.OwnerReferences = "", "", nil
	g.Expect(w.Delete(t.Context(), config)).To(Succeed())
	g.Expect(w.Create(t.Context(), again)).To(Succeed())
	discovery := runtimecatalog.GVHToPath(runtimecatalog.GroupVersionHook{
		Group: hooksv1.GroupVersion.Group, Version: hooksv1.GroupVersion.Version, Hook: runtimecatalog.HookName(hooksv1.Discovery),
	}, "")
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+address+discovery, strings.NewReader("{}"))
	g.Expect(err).NotTo(HaveOccurred())
	response, err := (&http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}).Do(request)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(response.Body.Close()).To(Succeed())
	g.Expect(response.StatusCode).To(Equal(http.StatusOK))
	g.Expect(owners()).To(isOwned, "when Cluster API asks for the hooks of another one")

	webhooks := rest.CopyConfig(w.Config())
	webhooks.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:" + deployment.Namespace + ":" + deployment.Spec.Template.Spec.ServiceAccountName}
	c, err := client.New(webhooks, client.Options{Scheme: apiserver.Scheme()})
	g.Expect(err).NotTo(HaveOccurred())
	for _, patch := range []string{
		`{"spec":{"clientConfig":{"service":{"namespace":"elsewhere"}}}}`,
		`{"metadata":{"annotations":{"runtime.cluster.x-k8s.io/inject-ca-from-secret":"elsewhere/ca"}}}`,
	} {
		g.Eventually(func() error { // the API server learns of a policy after a moment
			return c.Patch(t.Context(), config.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(patch)), client.DryRunAll)
		}, patience).Should(And(Satisfy(apierrors.IsForbidden), MatchError(ContainSubstring("ValidatingAdmissionPolicy"))), patch)
	}

	for _, o := range build(t, shared.root+"/config/shared") {
		if err := w.Delete(t.Context(), o); !meta.IsNoMatchError(err) { // cert-manager isn't there
			g.Expect(client.IgnoreNotFound(err)).To(Succeed())
		}
	}
	g.Eventually(func() error { _, err := owners(); return err }, patience).Should(Satisfy(apierrors.IsNotFound))
}
