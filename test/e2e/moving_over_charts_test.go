// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	"helm.sh/helm/v4/pkg/action"
	helmkube "helm.sh/helm/v4/pkg/kube"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/migration"
	"github.com/cluster-chandler/chandler/test/controlplane"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/realdata"
)

// movedCharts are published charts, and an object that goes with some values.
var movedCharts = []struct {
	file, name, namespace string
	values                map[string]any
	object                string // apiVersion, kind, namespace and name
}{
	{"cilium-1.19.6.tgz", "cilium", "kube-system", map[string]any{"hubble": map[string]any{"enabled": false}}, "v1 Service kube-system hubble-peer"},
	{"ingress-nginx-4.15.1.tgz", "ingress-nginx", "ingress", map[string]any{"controller": map[string]any{"admissionWebhooks": map[string]any{"enabled": false}}},
		"v1 Service ingress NAME-controller-admission"},
	{"kube-state-metrics-8.4.0.tgz", "kube-state-metrics", "monitoring", map[string]any{"rbac": map[string]any{"create": false}}, "rbac.authorization.k8s.io/v1 ClusterRole - kube-state-metrics"},
	{"metrics-server-3.13.1.tgz", "metrics-server", "kube-system", map[string]any{"apiService": map[string]any{"create": false}},
		"apiregistration.k8s.io/v1 APIService - v1beta1.metrics.k8s.io"},
}

// mayMove are the rights of who moves, in the namespace.
var mayMove = []rbacv1.PolicyRule{
	{APIGroups: []string{addonsv1.GroupVersion.Group}, Resources: []string{"addonstacks"}, Verbs: []string{"create", "patch", "delete"}},
	{APIGroups: []string{addonsv1.GroupVersion.Group}, Resources: []string{"addonplans"}, Verbs: []string{"create", "delete"}},
	{APIGroups: []string{addonsv1.GroupVersion.Group, "helm.toolkit.fluxcd.io"}, Resources: []string{"helmchartproxies", "helmreleaseproxies", "helmreleases"}, Verbs: []string{"list", "patch", "delete"}},
	{APIGroups: []string{"source.toolkit.fluxcd.io"}, Resources: []string{"helmrepositories", "ocirepositories"}, Verbs: []string{"get"}},
	{APIGroups: []string{"cluster.x-k8s.io"}, Resources: []string{"clusters"}, Verbs: []string{"list", "patch"}},
	{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get", "list", "create", "patch", "delete"}},
}

// TestMovingOver has four published charts installed in the way of each of the previous owners, on each cluster. They are moved
// over with the command, pruned, moved back, and upgraded with Helm.
func TestMovingOver(t *testing.T) {
	long.Test(t)
	t.Parallel()
	var releases []previousRelease
	for _, c := range movedCharts {
		r := previousRelease{chart: c.name, namespace: c.namespace, archive: realdata.Read(t, "charts", c.file),
			name: func(string) string { return c.name }, values: func(string) map[string]any { return map[string]any{} }}
		switch c.name {
		case "cilium":
			r.template = "cluster: {name: '{{ .Cluster.metadata.name }}'}\n"
			r.values = func(cluster string) map[string]any { return map[string]any{"cluster": map[string]any{"name": cluster}} }
		case "ingress-nginx":
			r.name = func(cluster string) string { return "nginx-17000000" + cluster }
		}
		releases = append(releases, r)
	}
	count := environmentNumber(t, "CHANDLER_TEST_CLUSTERS", 2)
	for _, origin := range []migration.Origin{migration.Provider, migration.Flux, migration.Helm} {
		t.Run(string(origin), func(t *testing.T) {
			m := newMoving(t, releases...)
			for i := range count {
				name := fmt.Sprintf("c%d", i)
				s := ownServer(t, controlplane.Options{Name: string(origin) + "-" + name, Workers: true, Nodes: 2})
				m.joins(name, m.userOn(s, name).Kubeconfig)
			}
			m.install(origin)
			m.startManager()
			m.movesWithTheCommand(origin)
		})
	}
}

func (m *moving) movesWithTheCommand(origin migration.Origin) {
	m.t.Helper()
	before := m.workloads()
	m.Expect(before).NotTo(BeEmpty())
	p := m.newPlugin(mayMove...)
	m.maySeeProviders(p)
	args := []string{"migrate", string(origin)}
	for _, r := range m.releases {
		args = append(args, "--repository", r.chart+"="+m.repository)
	}
	out := p.does(args...)
	m.Expect(out).To(And(ContainSubstring("kind: AddonStack"), ContainSubstring("name: cilium")))
	m.t.Log(out)
	m.t.Log(p.does(append(args, "--apply")...))
	m.Expect(cmp.Diff(before, m.workloads())).To(BeEmpty(), "no pod template changes")
	for _, cluster := range m.names() {
		for _, r := range m.releases {
			m.Expect(statusOf(m.awaitCluster(cluster, "it is there"), r.name(cluster))).To(HaveField("Phase", addonsv1.AddonReady))
		}
	}
	for _, kind := range []string{"addons.cluster.x-k8s.io/v1alpha1 HelmChartProxy", "addons.cluster.x-k8s.io/v1alpha1 HelmReleaseProxy", "helm.toolkit.fluxcd.io/v2 HelmRelease"} {
		l := &unstructured.UnstructuredList{}
		version, kind, _ := strings.Cut(kind, " ")
		l.SetAPIVersion(version)
		l.SetKind(kind)
		m.Expect(world.hub.List(m.t.Context(), l, client.InNamespace(m.namespace))).To(Succeed())
		for _, o := range l.Items {
			m.Expect(o.GetDeletionTimestamp()).NotTo(BeNil())
			m.Expect(o.Object["spec"]).To(HaveKeyWithValue("suspend", true), "Flux uninstalls nothing")
		}
	}

	m.prunes()
	m.t.Log(p.does(append(args[:2:2], "--back", "--apply")...))
	stacks := &addonsv1.AddonStackList{}
	m.Expect(world.hub.List(m.t.Context(), stacks, client.InNamespace(m.namespace))).To(Succeed())
	m.Expect(stacks.Items).To(BeEmpty())
	now := m.workloads()
	for i, c := range movedCharts {
		for _, cluster := range m.names() {
			m.Expect(m.upgrades(cluster, m.releases[i], nil)).To(Succeed(), "helm upgrade of %s", c.name)
		}
	}
	m.Expect(cmp.Diff(now, m.workloads())).To(BeEmpty(), "nothing is another way for Helm")
	for i, c := range movedCharts {
		for _, cluster := range m.names() {
			uninstall := action.NewUninstall(m.helmOn(cluster, c.namespace, c.namespace))
			uninstall.WaitStrategy, uninstall.Timeout = helmkube.HookOnlyStrategy, time.Minute
			_, err := uninstall.Run(m.releases[i].name(cluster))
			m.Expect(err).NotTo(HaveOccurred())
		}
	}
	m.Expect(m.workloads()).To(BeEmpty(), "helm uninstall takes all of it")
}

// maySeeProviders lets the user look whether the Helm add-on provider runs.
func (m *moving) maySeeProviders(p *plugin) {
	list := []string{"list"}
	world.hub.grant(m.t, "", "moves-"+m.namespace, user(p.user),
		rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: list},
		rbacv1.PolicyRule{APIGroups: []string{"admissionregistration.k8s.io"}, Resources: []string{"validatingwebhookconfigurations", "mutatingwebhookconfigurations"}, Verbs: list})
}

// prunes changes a value of each add-on by which an object goes.
func (m *moving) prunes() {
	m.t.Helper()
	stacks := &addonsv1.AddonStackList{}
	m.Expect(world.hub.List(m.t.Context(), stacks, client.InNamespace(m.namespace))).To(Succeed())
	for _, s := range stacks.Items {
		for _, c := range movedCharts {
			if s.Spec.Addons[0].Chart.Helm.Chart != c.name {
				continue
			}
			m.changeStack(s.Name, func(spec *addonsv1.AddonStackSpec) {
				text, err := json.Marshal(c.values)
				m.Expect(err).NotTo(HaveOccurred())
				m.Expect(spec.Addons[0].Values).To(BeNil())
				spec.Addons[0].Values = &apiextensionsv1.JSON{Raw: text}
			})
		}
	}
	for _, s := range stacks.Items {
		m.awaitReady(s.Name, "it is changed")
	}
	for i, c := range movedCharts {
		for cluster, config := range m.clusters {
			workload, err := client.New(config, client.Options{})
			m.Expect(err).NotTo(HaveOccurred())
			fields := strings.Fields(strings.ReplaceAll(c.object, "NAME", m.releases[i].name(cluster)+"-ingress-nginx"))
			o := &unstructured.Unstructured{}
			o.SetAPIVersion(fields[0])
			o.SetKind(fields[1])
			err = workload.Get(m.t.Context(), client.ObjectKey{Namespace: strings.Trim(fields[2], "-"), Name: fields[3]}, o)
			m.Expect(apierrors.IsNotFound(err)).To(BeTrue(), "%s on %s: %v", c.object, cluster, err)
		}
	}
}

// upgrades upgrades a release as "helm upgrade --reset-then-reuse-values" does.
func (m *moving) upgrades(cluster string, r previousRelease, values map[string]any) error {
	upgrade := action.NewUpgrade(m.helmOn(cluster, r.namespace, r.namespace))
	upgrade.Namespace, upgrade.ServerSideApply, upgrade.ResetThenReuseValues = r.namespace, "auto", true
	upgrade.WaitStrategy, upgrade.Timeout = helmkube.HookOnlyStrategy, time.Minute
	_, err := upgrade.Run(r.name(cluster), r.load(m.t), values)
	return err
}

// workloads returns the UIDs, the specs and the revisions of what has pods. A Deployment gets another generation when its
// annotations change, too.
func (m *moving) workloads() map[string]string {
	m.t.Helper()
	all := map[string]string{}
	for cluster, config := range m.clusters {
		workload, err := client.New(config, client.Options{})
		must.Succeed(m.t, err)
		for _, kind := range []string{"Deployment", "DaemonSet", "StatefulSet"} {
			for _, r := range m.releases {
				l := &unstructured.UnstructuredList{}
				l.SetAPIVersion("apps/v1")
				l.SetKind(kind)
				must.Succeed(m.t, workload.List(m.t.Context(), l, client.InNamespace(r.namespace)))
				for _, o := range l.Items {
					text, _ := json.Marshal(o.Object["spec"])
					all[fmt.Sprintf("%s %s %s/%s", cluster, kind, o.GetNamespace(), o.GetName())] = fmt.Sprint(o.GetUID(), o.GetAnnotations()["deployment.kubernetes.io/revision"], string(text))
				}
			}
		}
	}
	return all
}
