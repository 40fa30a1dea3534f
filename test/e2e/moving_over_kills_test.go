// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-chandler/chandler/internal/migration"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/virtualcluster"
)

// TestMovingOverInterrupted moves clusters over, and back. The command is killed after each of its steps and run
// again, and ends as one that isn't.
func TestMovingOverInterrupted(t *testing.T) {
	t.Parallel()
	for _, origin := range []migration.Origin{migration.Provider, migration.Flux, migration.Helm} {
		t.Run(string(origin), func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			whole, killed := newSmallMoving(t, origin, "w"), newSmallMoving(t, origin, "k")
			whole.moves(origin, false, 1000)
			steps := killed.moves(origin, false, 1)
			g.Expect(steps).To(BeNumerically(">", 10))
			g.Expect(cmp.Diff(whole.contents(t), killed.contents(t))).To(BeEmpty())
			g.Expect(whole.contents(t)).To(ContainElement(ContainSubstring("AddonStack")))

			whole.moves(origin, true, 1000)
			killed.moves(origin, true, 1)
			g.Expect(cmp.Diff(whole.contents(t), killed.contents(t))).To(BeEmpty())
			g.Expect(whole.contents(t)).NotTo(ContainElement(MatchRegexp("AddonStack|HelmRelease|HelmChart|-values|migrated")))
			for _, cluster := range killed.names() {
				for _, r := range killed.releases {
					g.Expect(killed.upgrades(cluster, r, nil)).To(Succeed(), "helm upgrade of %s on %s", r.chart, cluster)
				}
			}
		})
	}
}

// newSmallMoving has eight clusters, or three where time is short, and three releases: one that is the same on all clusters, one whose values differ, and
// one whose name differs.
func newSmallMoving(t *testing.T, origin migration.Origin, stem string) *moving {
	t.Helper()
	archive := func(name string) []byte {
		return chart{"values.yaml": "text: default\nother: default\n",
			"templates/text.yaml":  configMap("{{ .Release.Name }}", "{{ .Values.text | quote }}"),
			"templates/other.yaml": configMap("{{ .Release.Name }}-other", "{{ .Values.other | quote }}")}.archive(name, "1.0.0")
	}
	fixed := func(name string) func(string) string { return func(string) string { return name } }
	m := newMoving(t,
		previousRelease{chart: "same", namespace: "default", archive: archive("same"), name: fixed("same"), template: "text: one\n",
			values: func(string) map[string]any { return map[string]any{"text": "one"} }},
		previousRelease{chart: "differs", namespace: "default", archive: archive("differs"), name: fixed("differs"), template: "other: all\ntext: {{ randAlpha 3 }}\n",
			values: func(cluster string) map[string]any {
				return map[string]any{"text": cluster[len(cluster)-1:], "other": "all"}
			}},
		previousRelease{chart: "named", namespace: "kube-system", archive: archive("named"), template: "text: one\n",
			name: func(cluster string) string { return "named-170000000" + cluster[len(cluster)-1:] }, values: func(string) map[string]any { return map[string]any{"text": "one"} }})
	authority := virtualcluster.NewAuthority(t)
	count := 8
	if os.Getenv(long.Env) == "no" {
		count = 3
	}
	for i := range count {
		name := fmt.Sprintf("%s%s-%d", origin, stem, i)
		m.joins(name, authority.New(t, m.userOn(workloadServer(t, 1), name), name).Kubeconfig)
	}
	m.install(origin)
	m.startManager()
	return m
}

// moves runs the steps from their beginning, as often as it takes: at each time up to some that weren't run before. It
// returns how many there were. Without names of releases, all of the clusters are moved.
func (m *moving) moves(origin migration.Origin, isBack bool, atOnce int, names ...string) int {
	m.t.Helper()
	w := &migration.World{
		Client: world.hub, Namespace: m.namespace, Origin: origin, Names: names,
		Workload:     m.workload,
		Repositories: map[string]string{},
	}
	for _, r := range m.releases {
		w.Repositories[r.chart] = m.repository
	}
	done := sets.New[string]()
	for {
		if m.runs(w, isBack, atOnce, done) {
			return done.Len()
		}
	}
}

// runs runs the steps once, up to some that weren't done before. It reports whether these were all.
func (m *moving) runs(w *migration.World, isBack bool, atOnce int, done sets.Set[string]) (isOver bool) {
	m.t.Helper()
	ctx, cancel := context.WithTimeout(m.t.Context(), 3*patience)
	defer cancel()
	var steps []migration.Step
	if isBack {
		back, err := w.Back(ctx)
		m.Expect(err).NotTo(HaveOccurred())
		steps = back
	} else {
		found, err := migration.Gather(ctx, w)
		m.Expect(err).NotTo(HaveOccurred())
		m.Expect(found.Problems).To(BeEmpty())
		steps = found.Takeover(found.Plans())
	}
	cut := slices.IndexFunc(steps, func(s migration.Step) bool {
		if !done.Has(s.Name) {
			atOnce--
		}
		done.Insert(s.Name)
		return atOnce == 0
	})
	if cut >= 0 {
		steps = steps[:cut+1]
	}
	if err := migration.Run(ctx, steps, func(string) {}); err != nil {
		m.t.Fatalf("after %v: %v", sets.List(done), err)
	}
	return cut < 0
}

// contents returns what is there on both planes, without what differs between two fleets.
func (m *moving) contents(t *testing.T) (all []string) {
	t.Helper()
	list := func(c client.Client, version, kind, namespace string) []unstructured.Unstructured {
		l := &unstructured.UnstructuredList{}
		l.SetAPIVersion(version)
		l.SetKind(kind)
		m.Expect(c.List(t.Context(), l, client.InNamespace(namespace))).To(Succeed())
		return l.Items
	}
	add := func(o unstructured.Unstructured, fields ...string) {
		if o.GetDeletionTimestamp() != nil && o.GetKind() == "HelmRelease" {
			return // its controller isn't there, which takes its finalizer away
		}
		text := o.GetKind() + " " + o.GetName()
		for _, field := range fields {
			text += fmt.Sprint(" ", o.Object[field])
		}
		for _, key := range slices.Sorted(maps.Keys(o.GetLabels())) {
			if strings.Contains(key, "migrat") {
				text += " " + key + "=" + o.GetLabels()[key]
			}
		}
		for _, name := range m.names() {
			text = strings.ReplaceAll(text, name, "cluster-"+name[len(name)-1:])
		}
		all = append(all, strings.ReplaceAll(text, m.repository, "REPOSITORY"))
	}
	for kind, version := range map[string]string{
		"HelmChartProxy": "addons.cluster.x-k8s.io/v1alpha1", "HelmReleaseProxy": "addons.cluster.x-k8s.io/v1alpha1", "HelmRelease": "helm.toolkit.fluxcd.io/v2",
		"AddonStack": "addons.cluster.x-k8s.io/v1beta1", "Cluster": "cluster.x-k8s.io/v1beta2", "Secret": "v1",
	} {
		for _, o := range list(world.hub, version, kind, m.namespace) {
			switch {
			case kind == "AddonStack":
				add(o, "spec")
			case kind == "Secret" && strings.HasSuffix(o.GetName(), "-kubeconfig"):
			case kind == "Secret":
				add(o, "data")
			default:
				add(o)
			}
		}
	}
	for _, config := range m.clusters {
		workload, err := client.New(config, client.Options{})
		m.Expect(err).NotTo(HaveOccurred())
		for _, namespace := range []string{"default", "kube-system", "flux-system"} {
			for _, o := range list(workload, "v1", "ConfigMap", namespace) {
				if o.GetName() != "kube-root-ca.crt" {
					add(o, "data")
				}
			}
			for _, o := range list(workload, "v1", "Secret", namespace) {
				if o.Object["type"] == string(corev1.SecretType("helm.sh/release.v1")) {
					add(o)
				}
			}
		}
	}
	slices.Sort(all)
	return all
}
