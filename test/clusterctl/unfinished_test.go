// SPDX-License-Identifier: Apache-2.0

package clusterctl

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/must"
)

// TestMoveOfAnUpgradeUnderWay moves while a Deployment isn't available yet. The manager where it comes from is killed
// before the move, as if its host had failed, and comes back after it.
func TestMoveOfAnUpgradeUnderWay(t *testing.T) {
	long.Test(t)
	t.Parallel()
	g := NewWithT(t)
	tm := newTeam(t)
	tm.makeCluster(tm.here)
	web := addonsv1.Addon{Name: "web", Namespace: tm.namespace, Chart: addonsv1.ChartSource{Path: "web"}}
	tm.create(tm.here, newStack(tm.namespace, web))
	here, there := tm.run(tm.here), tm.run(tm.there)
	tm.await(tm.here, "it is installed", ready("web"))
	tm.changeStack(tm.here, func(spec *addonsv1.AddonStackSpec) { spec.Addons[0].Values = valuesOf(map[string]any{"stuck": true}) })
	tm.await(tm.here, "its upgrade has begun", phase("web", addonsv1.AddonUpgrading, ""))
	here.AwaitRest()
	here.Kill()
	applied, start := tm.deployment("web"), time.Now()

	tm.move(tm.here)

	tm.await(tm.there, "the upgrade is under way there, too", phase("web", addonsv1.AddonUpgrading, ""))
	there.AwaitRest()
	g.Expect(tm.releases()).To(HaveKeyWithValue("web/2", "pending-upgrade"), "it is the same upgrade")
	g.Expect(tm.deployment("web").ResourceVersion).To(Equal(applied.ResourceVersion), "what was applied doesn't change")
	again := tm.run(tm.here)
	again.AwaitRest()

	tm.changeStack(tm.there, func(spec *addonsv1.AddonStackSpec) { spec.Addons[0].Values = valuesOf(map[string]any{"stuck": false}) })
	tm.await(tm.there, "it comes to its end there", ready("web"))
	g.Expect(tm.releases()).To(HaveKeyWithValue("web/3", "deployed"))
	g.Expect(by(tm.version(tm.here), tm.workload.requests(t, tm.user(), start))).To(BeEmpty(), "a manager that comes back has no Cluster to manage")
}

// deployment reads one from the workload cluster.
func (tm *team) deployment(name string) *appsv1.Deployment {
	tm.t.Helper()
	d := &appsv1.Deployment{}
	must.Succeed(tm.t, tm.workload.Get(tm.t.Context(), tm.key(name), d))
	return d
}

// TestMoveWithoutTheValues forgets the label on the Secret that an add-on takes values from.
func TestMoveWithoutTheValues(t *testing.T) {
	long.Test(t)
	t.Parallel()
	g := NewWithT(t)
	tm := newTeam(t)
	tm.makeCluster(tm.here)
	tm.makeStack(tm.here)
	values := &corev1.Secret{}
	g.Expect(tm.here.Get(t.Context(), tm.key("settings-values"), values)).To(Succeed())
	delete(values.Labels, clusterctlv1.ClusterctlMoveLabel)
	g.Expect(tm.here.Update(t.Context(), values)).To(Succeed())
	here, there := tm.run(tm.here), tm.run(tm.there)
	tm.await(tm.here, "all is installed", ready("settings", "vault", "web"))
	here.AwaitRest()
	installed, start := tm.releases(), time.Now()

	tm.move(tm.here)

	tm.await(tm.there, "the message says what is missing", func(ca *addonsv1.ClusterAddon) error {
		return firstError(phase("settings", addonsv1.AddonPending, "Secret "+tm.namespace+"/settings-values doesn't exist")(ca), phase("vault", addonsv1.AddonReady, "")(ca))
	})
	there.AwaitRest()
	g.Expect(tm.releases()).To(Equal(installed))
	g.Expect(writes(tm.workload.requests(t, tm.user(), start))).To(BeEmpty(), "what is installed stays as it is")

	values.ResourceVersion, values.UID = "", ""
	tm.create(tm.there, values)
	tm.await(tm.there, "it is well as soon as the Secret is there", ready("settings", "vault", "web"))
	there.AwaitRest()
	g.Expect(tm.releases()).To(Equal(installed))
	g.Expect(writesButNotes(tm.workload.requests(t, tm.user(), start))).To(BeEmpty())
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
