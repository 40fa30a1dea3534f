// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/long"
)

// TestRollBack upgrades to a chart whose Service is refused, and asks for another try.
func TestRollBack(t *testing.T) {
	long.Test(t)
	t.Parallel()
	d := newDrifting(t, 1, nil, func(a *addonsv1.Addon) { a.OnFailure = addonsv1.FailurePolicyRollBack })
	broken := chart{}
	for file, text := range webChart {
		broken[file] = text + "---\napiVersion: v1\nkind: Service\nmetadata: {name: '{{ .Release.Name }}-broken'}\nspec: {ports: [{port: 99999}]}\n"
	}
	broken["values.yaml"] = "replicas: 1\ntag: '2'\n"
	path := d.writeChart("web", "2.0.0", broken)
	d.changeAddon("platform", "web", func(a *addonsv1.Addon) { a.Chart.Path = path })
	rolledBack := phase("web", addonsv1.AddonFailed, "RolledBack", "rolled back to version 1.0.0")
	d.awaitCluster("prod", "what was there comes back", rolledBack, func(ca *addonsv1.ClusterAddon) error {
		if s := statusOf(ca, "web"); s.Revision != 3 || s.Version != "1.0.0" || s.Objects.Ready != s.Objects.Total {
			return fmt.Errorf("%+v", s)
		}
		return nil
	})
	awaitObject(d, d.deployment(), func(o *appsv1.Deployment) error {
		if image := o.Spec.Template.Spec.Containers[0].Image; image != "registry.example/web:1" {
			return fmt.Errorf("%s", image)
		}
		return nil
	})
	d.settle()
	d.Expect(d.s.release(t, d.namespace, "web")).To(Equal(releaseState{3, "deployed"}))

	// It is repaired meanwhile, also after a restart.
	d.restart()
	d.Expect(d.s.Delete(t.Context(), d.configMap())).To(Succeed())
	awaitObject(d, d.configMap(), func(*corev1.ConfigMap) error { return nil })
	d.awaitCluster("prod", "it is told still", rolledBack)

	change(d.tenant, d.clusterAddon("prod"), func(ca *addonsv1.ClusterAddon) { ca.Annotations = labels(addonsv1.ReconcileNowAnnotation + "=one") })
	d.awaitCluster("prod", "it is tried again on request", rolledBack, func(ca *addonsv1.ClusterAddon) error {
		if s := statusOf(ca, "web"); s.Revision != 5 || ca.Status.LastReconcileNow != "one" {
			return fmt.Errorf("%+v, after %q", s, ca.Status.LastReconcileNow)
		}
		return nil
	})
	d.changeAddon("platform", "web", func(a *addonsv1.Addon) { a.Chart.Path = d.path; a.Values = valuesOf(map[string]any{"tag": "3"}) })
	d.awaitCluster("prod", "another version is installed", installedAs("web", 6, "1.0.0"), ready("web"))
}
