// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/test/fluxserver"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/targz"
)

// TestFlux names artifacts of Flux before its kinds, the right to read them, and the objects are there. It takes newer ones when a
// watch tells of them, and keeps on clusters what is gone.
func TestFlux(t *testing.T) {
	long.InCI(t)
	t.Parallel()
	tn := newTenant(t)
	server := fluxserver.Start(t)
	files := func(version string) []byte {
		all := map[string]string{"manifests/settings.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: of-manifests\ndata: {version: " + version + "}\n"}
		for name, data := range configMapChart.complete("settings", version) {
			all["charts/settings/"+name] = data
		}
		return targz.Files(t, all)
	}
	object := server.Object(t, "GitRepository", tn.namespace, "apps", "main@sha1:1", files("1.0.0"))
	from := &addonsv1.FluxSource{Kind: "GitRepository", Name: "apps"}
	put := func(revision, version string) string {
		t.Helper()
		artifact := server.Artifact(t, object, revision, files(version))
		is := &unstructured.Unstructured{}
		is.SetGroupVersionKind(object.GroupVersionKind())
		must.Succeed(t, world.hub.Get(t.Context(), tn.key("apps"), is))
		must.Succeed(t, unstructured.SetNestedMap(is.Object, artifact, "status", "artifact"))
		must.Succeed(t, world.hub.Update(t.Context(), is))
		return revision + "#" + artifact["digest"].(string)[7:19]
	}
	tn.makeCluster("first", workloadServer(t, 0), labels("env=prod"))
	tn.startManager()
	plain := addonsv1.Addon{Name: "plain", Namespace: tn.namespace, Manifests: &addonsv1.ManifestsSource{
		ArtifactSource: addonsv1.ArtifactSource{Flux: from}, Directory: "manifests",
	}}
	tn.makeStack("beside", labels("env=prod"), plain)
	tn.awaitStatus("beside", "its kind isn't there", sources(metav1.ConditionUnknown, failure.ArtifactNotFound, "source-controller"))
	for _, kind := range []string{"GitRepository", "HelmChart"} {
		must.Succeed(t, world.hub.Create(t.Context(), definitionOf("source.toolkit.fluxcd.io", "v1", kind, apiextensionsv1.NamespaceScoped)))
	}
	poll(t, patience, "the kind is served", func() error { return world.hub.Create(t.Context(), object.DeepCopy()) })
	tn.lookNow("beside")
	tn.awaitStatus("beside", "it may not be read", sources(metav1.ConditionUnknown, failure.SourceUnauthorized, "config/flux"))
	world.hub.grant(t, tn.namespace, "flux", user(tn.user), rbacv1.PolicyRule{
		APIGroups: []string{"source.toolkit.fluxcd.io"}, Resources: []string{"gitrepositories", "helmcharts"}, Verbs: []string{"get", "list", "watch"},
	})
	tn.lookNow("beside")
	first := put("main@sha1:1", "1.0.0")
	tn.awaitStatus("beside", "it is read", followsAt("plain", first, ""), sources(metav1.ConditionTrue, addonsv1.SourcesReadyReason, ""), counts(1, 1))
	bundled := tn.newStack("platform", labels("env=prod"))
	bundled.Spec.Source = &addonsv1.BundleSource{ArtifactSource: addonsv1.ArtifactSource{Flux: from}}
	bundled.Spec.Addons = []addonsv1.Addon{tn.addon("settings", "charts/settings")}
	tn.create(bundled)
	tn.awaitCluster("first", "the chart is in the bundle", installedAs("settings", 1, "1.0.0"))
	kept := tn.keptOf("platform").Source
	tn.Expect(*kept.Flux).To(Equal(addonsv1.FluxSource{Kind: "GitRepository", Name: "apps", Revision: first, Digest: kept.Digest}), "what is behind a revision is exact")

	second := put("main@sha1:2", "1.1.0")
	tn.awaitCluster("first", "a watch tells of another", installedAs("settings", 2, "1.1.0"), installedAs("plain", 2, ""))
	tn.changeStack("beside", func(s *addonsv1.AddonStackSpec) { s.Updates = &addonsv1.Updates{Suspend: ptr.To(true)} })
	third := put("main@sha1:3", "1.2.0")
	tn.awaitStatus("beside", "it says what it would take", followsAt("plain", second, third), counts(1, 1))
	tn.changeStack("beside", func(s *addonsv1.AddonStackSpec) { s.Updates = nil })
	tn.awaitStatus("beside", "it takes that", followsAt("plain", third, ""), counts(1, 1))
	tn.awaitCluster("first", "all have it", installedAs("settings", 3, "1.2.0"), installedAs("plain", 3, ""))

	must.Succeed(t, world.hub.Delete(t.Context(), object.DeepCopy()))
	tn.awaitStatus("beside", "it is gone", sources(metav1.ConditionFalse, failure.ArtifactNotFound, "no such GitRepository"), counts(1, 1))
	server.Close()
	tn.restart()
	tn.settle()
	s := tn.awaitStatus("platform", "it is gone", sources(metav1.ConditionFalse, failure.ArtifactNotFound, "no such GitRepository"), counts(1, 1))
	tn.Expect(checkCondition(s, addonsv1.ReadyCondition, metav1.ConditionTrue, "", "")).To(Succeed(), "what is installed stays ready")
	tn.awaitCluster("first", "and installed", installedAs("settings", 3, "1.2.0"), installedAs("plain", 3, ""))
}
