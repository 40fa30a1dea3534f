// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/migration"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/must"
)

// TestMovedReleasesMeetOtherFacts moves releases over whose charts ask for a kind, takes out the adoption policy as the documentation
// has it, and lets the kind come. The pods that Helm made are there after each, and what Chandler left as Helm wrote it stays so.
func TestMovedReleasesMeetOtherFacts(t *testing.T) {
	long.InCI(t)
	t.Parallel()
	var releases []previousRelease
	group := "facts-" + utilrand.String(4) + ".kinds.test"
	for name, c := range askingCharts(group + "/v1/Thing") {
		releases = append(releases, previousRelease{chart: name, archive: c.archive(name, "1.0.0"),
			name: func(string) string { return name }, values: func(string) map[string]any { return nil }})
	}
	m, s := newMoving(t, releases...), workloadServer(t, 1)
	var names []string // other tests have releases on the server
	for i := range m.releases {
		m.releases[i].namespace = m.namespace
		names = append(names, m.namespace+"/"+m.releases[i].chart)
	}
	m.joins("facts", m.userOn(s, "facts").Kubeconfig)
	m.install(migration.Helm)
	pods := func() (uids []string) {
		all := &corev1.PodList{}
		must.Succeed(t, s.List(t.Context(), all, client.InNamespace(m.namespace)))
		for i := range all.Items {
			uids = append(uids, string(all.Items[i].UID))
		}
		return uids
	}
	m.Eventually(pods, patience).Should(HaveLen(1))
	workloads, before := m.workloads(), pods()
	m.startManager()
	m.moves(migration.Helm, false, 1000, names...)
	m.Expect(m.workloads()).To(Equal(workloads), "after the takeover")

	taken := map[string]int{}
	for _, r := range m.releases {
		m.changeStack(r.chart, func(spec *addonsv1.AddonStackSpec) { spec.Addons[0].AdoptionPolicy = "" })
		m.awaitReady(r.chart, "it is without the policy")
		taken[r.chart] = s.release(t, m.namespace, r.chart).revision
	}
	m.Expect(m.workloads()).To(Equal(workloads), "without the policy")
	factsOf := func(release string) string {
		record := &corev1.Secret{}
		must.Succeed(t, s.Get(t.Context(), m.key(fmt.Sprintf("sh.helm.release.v1.%s.v%d", release, taken[release])), record))
		summary, _ := deliver.SummaryOf(&record.ObjectMeta)
		return summary.FactsUsed
	}
	known := map[string]string{}
	for _, r := range m.releases {
		known[r.chart] = factsOf(r.chart)
	}
	makeKind(t, s, group, "Thing")
	m.Eventually(func() (still []string) {
		for name, was := range known {
			if factsOf(name) == was {
				still = append(still, name)
			}
		}
		return still
	}, 2*patience).Should(BeEmpty(), "all records are to have the new facts")
	m.awaitCluster("facts", "the record tells of the kind", installedAs("grafana", int32(taken["grafana"]), ""), func(ca *addonsv1.ClusterAddon) error {
		if statusOf(ca, "grafana").Message == "" {
			return fmt.Errorf("nothing says that grafana would be rendered otherwise")
		}
		return nil
	})
	for _, r := range m.releases {
		m.Expect(s.release(t, m.namespace, r.chart).revision).To(Equal(taken[r.chart]), r.chart)
	}
	m.Expect(m.workloads()).To(Equal(workloads), "with another kind")
	m.Expect(pods()).To(Equal(before))
}
