// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/long"
)

// fromSecrets are sources of values.
func fromSecrets(names ...string) (refs []addonsv1.ValuesReference) {
	for _, name := range names {
		refs = append(refs, addonsv1.ValuesReference{Kind: "Secret", Name: name})
	}
	return refs
}

func withValuesFrom(refs ...addonsv1.ValuesReference) func(*addonsv1.Addon) {
	return func(a *addonsv1.Addon) { a.ValuesFrom = refs }
}

// setSecretText changes the text in a Secret with values.
func (tn *tenant) setSecretText(name, key, text string) {
	tn.t.Helper()
	change(tn, tn.secret(name, nil), func(s *corev1.Secret) { s.Data = map[string][]byte{key: []byte("text: " + text)} })
}

// TestValuesOfEachCluster has a Secret for each cluster, as an infrastructure provider writes it beside the Cluster.
func TestValuesOfEachCluster(t *testing.T) {
	long.InCI(t)
	t.Parallel()
	tn := newTenant(t)
	const key = "clouds.yaml"
	servers := map[string]*server{}
	for i, name := range []string{"bergen", "genoa", "osaka"} {
		servers[name] = workloadServer(t, i)
		tn.makeCluster(name, servers[name], nil)
		if name != "osaka" {
			tn.create(tn.secret(name+"-cloud-config", map[string]string{key: "text: in " + name}))
		}
	}
	tn.startManager()
	ref := fromSecrets("{{ .Cluster.metadata.name }}-cloud-config")[0]
	ref.Key = key
	tn.makeStack("clouds", nil, tn.small("settings", withValuesFrom(ref)))

	expectText := func(tn *tenant, revision int, cluster, text string) {
		tn.t.Helper()
		tn.awaitCluster(cluster, "it has its own values", installedAs("settings", int32(revision), ""))
		tn.awaitText(servers[cluster], "settings", text)
		tn.Expect(servers[cluster].release(tn.t, tn.namespace, "settings")).To(Equal(releaseState{revision, "deployed"}))
	}
	expectText(tn, 1, "bergen", "in bergen")
	expectText(tn, 1, "genoa", "in genoa")
	tn.awaitCluster("osaka", "what is missing is named",
		phase("settings", addonsv1.AddonPending, "ValuesNotFound", tn.namespace+"/osaka-cloud-config doesn't exist"))
	tn.awaitStack("clouds", "the stack says it, too", addonsv1.ReadyCondition, metav1.ConditionFalse, "", "osaka-cloud-config")
	tn.create(tn.secret("osaka-cloud-config", map[string]string{key: "text: in osaka"}))
	expectText(tn, 1, "osaka", "in osaka")
	tn.awaitReady("clouds", "all have theirs")
	tn.settle()

	tn.run("a change of the Secret concerns one cluster", func(t *testing.T, tn *tenant) {
		hub, genoa, osaka := world.hub.mark(t), servers["genoa"].mark(t), servers["osaka"].mark(t)
		tn.setSecretText("bergen-cloud-config", key, "another in bergen")
		expectText(tn, 2, "bergen", "another in bergen")
		tn.awaitReady("clouds", "it is taken up")
		tn.settle()
		tn.Expect(described(genoa.requests(t, tn.clusterUser("genoa")), notProbe)).To(BeEmpty())
		tn.Expect(described(osaka.requests(t, tn.clusterUser("osaka")), notProbe)).To(BeEmpty())
		tn.Expect(reads(hub.requests(t, tn.user), "secrets", "", "get", "list")).To(HaveLen(1), "of all Secrets, the one that changed is read")
	})

	tn.run("reconciling costs nothing", func(t *testing.T, tn *tenant) {
		hub, bergen := world.hub.mark(t), servers["bergen"].mark(t)
		for i := range 3 {
			tn.reconcileAgain("bergen", fmt.Sprint(i))
		}
		tn.settle()
		tn.Expect(described(hub.requests(t, tn.user), func(e auditEvent) bool {
			return !registers(e) && e.Verb != "watch" && (e.ObjectRef == nil || e.ObjectRef.Resource != "leases")
		})).To(BeEmpty(), "an unchanged reconcile asks the management cluster for nothing")
		tn.Expect(described(bergen.requests(t, tn.clusterUser("bergen")), notProbe)).To(BeEmpty())
	})
}

// TestValuesByLabel has a label of the Cluster say which Secret it takes. Whoever writes labels may write anything there.
func TestValuesByLabel(t *testing.T) {
	t.Parallel()
	tn := newTenant(t)
	s := workloadServer(t, 1)
	for _, name := range []string{"blue-config", "green-config"} {
		tn.create(tn.secret(name, map[string]string{"values.yaml": "text: " + name}))
	}
	tn.makeCluster("prod", s, labels("cloud=blue"))
	tn.startManager()
	by := func(template string) addonsv1.ValuesReference {
		ref := fromSecrets(template)[0]
		ref.Optional = ptr.To(true)
		return ref
	}
	tn.makeStack("clouds", nil,
		// Two references to one object are as good as one of them.
		tn.small("settings", withValuesFrom(by("{{ .Cluster.metadata.labels.cloud }}-config"), by("{{ index .Member.labels `cloud` }}-config"))),
		tn.small("careless", withValuesFrom(by(`{{ dig "annotations" "config" "none" .Cluster.metadata }}`))),
	)
	expect := func(revision int32, text string) {
		t.Helper()
		tn.awaitCluster("prod", text, installedAs("settings", revision, ""))
		tn.awaitText(s, "settings", text)
	}
	expect(1, "blue-config")
	tn.relabel("prod", "cloud=green")
	expect(2, "green-config")
	tn.settle()
	before := tn.reconciled("clusteraddon")
	tn.setSecretText("blue-config", "values.yaml", "a change that concerns nobody")
	tn.setSecretText("green-config", "values.yaml", "another green")
	expect(3, "another green")
	tn.settle()
	after := tn.reconciled("clusteraddon")
	t.Logf("%.0f reconciles of a change of one Secret", after-before)
	tn.relabel("prod", "cloud=yellow")
	expect(4, "default")

	tn.relabel("prod", "cloud=Yellow")
	refused := func(addon, name string) clusterCheck {
		return phase(addon, addonsv1.AddonFailed, "ValuesInvalid", name)
	}
	tn.awaitCluster("prod", "no Secret has a capital in its name", refused("settings", `addons[settings].valuesFrom[0].name: the template "{{ .Cluster.metadata.labels.cloud }}-config" makes the name "Yellow-config"`))
	tn.Expect(s.release(t, tn.namespace, "settings")).To(Equal(releaseState{4, "deployed"}), "it stays as it is")
	tn.relabel("prod", "cloud=green")
	expect(5, "another green")
	tn.relabel("prod")
	tn.awaitCluster("prod", "without the label", phase("settings", addonsv1.AddonFailed, "ValuesTemplateFailed", "addons[settings].valuesFrom[0].name:1"))

	hub := world.hub.mark(t)
	for _, hostile := range []string{"../x", "kube-system/cert", "blue-config\n", "a\nb", "?limit=500", "", "..", "blue-config/status", "%2e%2e", "\x00", "ａ"} {
		change(tn, newCluster(tn.namespace, "prod", nil), func(c *clusterv1.Cluster) {
			metav1.SetMetaDataAnnotation(&c.ObjectMeta, "config", hostile)
		})
		tn.awaitCluster("prod", "it is refused", refused("careless", fmt.Sprintf("makes the name %+q", hostile)))
	}
	tn.Expect(reads(hub.requests(t, tn.user), "secrets", "", "get", "list")).To(BeEmpty(), "no Secret is asked for by such a name")
}

// TestValuesByInfrastructure has the infrastructure object say which Secret a cluster takes.
func TestValuesByInfrastructure(t *testing.T) {
	long.InCI(t)
	t.Parallel()
	tn := newTenant(t)
	s := workloadServer(t, 2)
	installInfraClusterCRD(t)
	infra := tn.infraCluster("prod", "eu-1")
	tn.create(infra)
	for _, region := range []string{"eu-1", "eu-2"} {
		tn.create(tn.secret("config-"+region, map[string]string{"values.yaml": "text: in " + region}))
	}
	tn.makeCluster("prod", s, nil, func(c *clusterv1.Cluster) {
		c.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: infraGroup, Kind: infraKind, Name: "prod"}
	})
	tn.startManager()
	tn.makeStack("clouds", nil, tn.small("settings", withValuesFrom(fromSecrets("config-{{ .InfraCluster.spec.region }}")...)))
	tn.awaitText(s, "settings", "in eu-1")
	tn.awaitReady("clouds", "it is installed")
	tn.settle()
	change(tn, infra, func(u *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(u.Object, "eu-2", "spec", "region")
	})
	tn.awaitText(s, "settings", "in eu-2")
	tn.setSecretText("config-eu-2", "values.yaml", "another in eu-2")
	tn.awaitText(s, "settings", "another in eu-2")
}
