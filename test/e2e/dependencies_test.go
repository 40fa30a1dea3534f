// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// TestDependsOnAcrossStacks has add-ons of one stack wait for those of another.
func TestDependsOnAcrossStacks(t *testing.T) {
	t.Parallel()
	tn, s := newProd(t, 0)
	path := tn.smallChart()
	broken := tn.writeChart("broken", "1.0.0", chart{"templates/x.yaml": "{{ fail \"not yet\" }}"})
	// The one that waits comes first by name.
	tn.makeStack("apps", nil, tn.small("app", after("base/network")))
	tn.awaitCluster("prod", "the stack isn't there", phase("app", addonsv1.AddonPending, "WaitingForDependency", "base/network"))
	tn.makeStack("base", nil, tn.addon("network", broken))
	tn.awaitCluster("prod", "it isn't ready", phase("network", addonsv1.AddonFailed, "TemplateFailed", ""), phase("app", addonsv1.AddonPending, "WaitingForDependency", "base/network"))
	tn.changeAddon("base", "network", func(a *addonsv1.Addon) { a.Chart.Path = path })
	tn.awaitCluster("prod", "it is ready", ready("network", "app"))

	t.Run("around", func(t *testing.T) { // no webhook is there to refuse it
		tn := tn.in(t)
		add := func(stack, name, dependency string) {
			tn.changeStack(stack, func(spec *addonsv1.AddonStackSpec) {
				spec.Addons = append(spec.Addons, tn.small(name, after(dependency)))
			})
		}
		add("apps", "chicken", "base/egg")
		add("base", "egg", "apps/chicken")
		tn.awaitCluster("prod", "neither can be installed before the other",
			phase("egg", addonsv1.AddonPending, "WaitingForDependency", "apps/chicken -> base/egg -> apps/chicken"),
			phase("chicken", addonsv1.AddonPending, "WaitingForDependency", "base/egg -> apps/chicken -> base/egg"))
		tn.changeAddon("base", "egg", func(a *addonsv1.Addon) { a.DependsOn = nil })
		tn.awaitCluster("prod", "that was the way out", ready("network", "app", "egg", "chicken"))
	})

	mark := s.mark(t)
	leave := func(stack string) {
		tn.changeStack(stack, func(spec *addonsv1.AddonStackSpec) { spec.ClusterSelector.MatchLabels = labels("no=cluster") })
	}
	leave("base")
	tn.awaitCluster("prod", "what others depend on stays while they do", phase("network", addonsv1.AddonRemoving, "WaitingForDependent", "apps/app"))
	leave("apps")
	tn.awaitCluster("prod", "all is removed", ready())
	var deleted []string
	for _, e := range mark.requests(t, tn.clusterUser("prod")) {
		if e.Verb == "delete" && e.ObjectRef.Resource == "configmaps" {
			deleted = append(deleted, e.ObjectRef.Name)
		}
	}
	tn.Expect(deleted).To(ContainElements("app", "network", "chicken", "egg"))
	tn.Expect(slices.Index(deleted, "app")).To(BeNumerically("<", slices.Index(deleted, "network")))
	tn.Expect(slices.Index(deleted, "chicken")).To(BeNumerically("<", slices.Index(deleted, "egg")))
}

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
