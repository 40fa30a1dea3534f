// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// TestMissingDependency has a chart that names a dependency and doesn't bring it along, and
// then one that does.
func TestMissingDependency(t *testing.T) {
	t.Parallel()
	tn, s := newProd(t, 0)
	umbrella := func(version string) chart {
		return chart{
			"Chart.yaml":          "apiVersion: v2\nname: umbrella\nversion: " + version + "\ndependencies: [{name: database, version: 1.x, repository: 'https://charts.invalid'}]\n",
			"templates/text.yaml": configMap("{{ .Release.Name }}-own", "{{ .Chart.Version | quote }}"),
		}
	}
	whole := umbrella("1.0.0")
	whole["charts/database/Chart.yaml"] = "apiVersion: v2\nname: database\nversion: 1.2.0\n"
	whole["charts/database/templates/text.yaml"] = configMap("{{ .Release.Name }}-database", "{{ .Chart.Version | quote }}")
	first, second := tn.writeChart("umbrella", "1.0.0", whole), tn.writeChart("umbrella", "2.0.0", umbrella("2.0.0"))
	tn.makeStack("platform", nil, tn.addon("umbrella", first))
	tn.awaitCluster("prod", "what is in charts/ is installed", ready("umbrella"), installedAs("umbrella", 1, "1.0.0"))
	NewWithT(t).Expect(s.Get(t.Context(), client.ObjectKey{Namespace: tn.namespace, Name: "umbrella-database"}, &corev1.ConfigMap{})).To(Succeed())

	tn.settle()
	deletions := tn.watchDeletions(s)
	tn.changeAddon("platform", "umbrella", func(a *addonsv1.Addon) { a.Chart.Path = second })
	tn.awaitCluster("prod", "what misses is named", phase("umbrella", addonsv1.AddonFailed, "ChartInvalid", "database"))
	NewWithT(t).Expect(deletions()).To(BeEmpty(), "what is installed stays")
	NewWithT(t).Expect(s.release(t, tn.namespace, "umbrella")).To(Equal(releaseState{1, "deployed"}))
}
