// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/cluster-api/util/conditions"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/controlplane"
	"github.com/cluster-chandler/chandler/test/faulty"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/registry"
)

// TestInvalidIsToldOnce has a bundle that is none, and a chart that is none, of a
// registry. It restarts the manager while the registry is slow. Both stay what they are,
// and nothing of that is news.
func TestInvalidIsToldOnce(t *testing.T) {
	long.InCI(t)
	t.Parallel()
	tn := newTenant(t)
	origin, authority := registry.Start(t, registry.Options{PlainHTTP: true}), registry.NewAuthority(t)
	credentials := trusting(t, authority.PEM)
	origin.Push(t, configMapChart.archive("settings", "1.0.0"), "bundles/chart", "1.0.0")
	origin.PushArchive(t, tarball(map[string]string{"x/README.md": "no chart"}), "charts/none", "1.0.0")
	host := faulty.Start(t, authority, inFrontOf(origin.Host))
	tn.makeCluster("c", workloadServer(t, 0), labels("env=prod"))
	tn.startManager("--credentials-dir=" + credentials)

	tn.makeStack("chart", labels("env=prod"), tn.addon("settings", "", fromOCI("oci://"+host.Host+"/charts/none", "1.0.0")))
	bundle := tn.newStack("bundle", labels("env=none"))
	bundle.Spec.Source = &addonsv1.BundleSource{ArtifactSource: addonsv1.ArtifactSource{
		OCI: &addonsv1.OCISource{URL: "oci://" + host.Host + "/bundles/chart"}, Version: "1.0.0"}}
	tn.create(bundle)
	hasFailed := phase("settings", addonsv1.AddonFailed, "ArtifactInvalid", "")
	isInvalid := func(s *addonsv1.AddonStack) error {
		return checkCondition(s, addonsv1.ValidCondition, metav1.ConditionFalse, "ArtifactInvalid", "")
	}
	tn.awaitCluster("c", "its chart is none", hasFailed)
	since := conditions.GetLastTransitionTime(tn.awaitStatus("bundle", "it is a chart", isInvalid), addonsv1.ValidCondition)
	of := func() []int {
		return []int{tn.warningsOf("ClusterAddon", "ArtifactInvalid"), tn.warningsOf("AddonStack", "ArtifactInvalid")}
	}
	tn.Eventually(of, patience).Should(Equal([]int{1, 2}), "the add-on, and both stacks")

	tn.stopManager()
	host.Fail(faulty.Silent)
	tn.startManager("--credentials-dir=" + credentials)
	tn.awaitReconcile("clusteraddon", 1)
	tn.awaitCluster("c", "its registry is slow, and nobody knows better yet", hasFailed)
	tn.awaitReconcile("addonstack", 1)
	tn.awaitStatus("bundle", "nobody knows better yet", isInvalid)
	host.Heal()
	tn.awaitCluster("c", "its chart is none still", hasFailed)
	tn.settle()
	still := tn.awaitStatus("bundle", "it is a chart still", isInvalid)
	tn.Expect(conditions.GetLastTransitionTime(still, addonsv1.ValidCondition)).To(Equal(since), "it never was valid")
	tn.Expect(of()).To(Equal([]int{1, 2}), "%q", tn.warnings())
}

// TestDeletedStacksSendNoWarning deletes stacks that are all right, 20 at once, 100 in all. Each third
// one leaves its add-on behind. One stack stays, and its add-ons with it.
func TestDeletedStacksSendNoWarning(t *testing.T) {
	long.Test(t)
	t.Parallel()
	tn, _ := newProd(t, 0)
	tn.makeStack("stays", nil, tn.small("stays"))
	for round := range 5 {
		var stacks []*addonsv1.AddonStack
		for i := range 20 {
			name := fmt.Sprintf("stack-%d-%02d", round, i)
			stack := tn.newStack(name, nil, tn.small(name))
			limit := intstr.FromString("100%")
			stack.Spec.RemovalLimit = &limit
			if i%3 == 0 {
				stack.Spec.DeletionPolicy = addonsv1.DeletionPolicyOrphan
			}
			tn.create(stack)
			stacks = append(stacks, stack)
		}
		for _, stack := range stacks {
			tn.awaitReady(stack.Name, "its add-on is there")
		}
		for _, stack := range stacks {
			tn.remove(stack)
		}
		tn.awaitCluster("prod", "all but one are gone", ready("stays"))
		tn.settle()
		tn.Expect(tn.warnings()).To(BeEmpty())
	}
}

// TestFailedHookStaysFailed watches a stack whose hook fails, until the hook has been tried three times. A chart whose hook
// works heals the add-on.
func TestFailedHookStaysFailed(t *testing.T) {
	long.InCI(t)
	t.Parallel()
	tn, s := newProd(t, 0)
	hooked := func(version string, podAnnotations ...string) string {
		return tn.writeChart("hooked", version, chart{
			"templates/hook.yaml": hookJob("pre-install", podAnnotations...), "templates/text.yaml": configMap("text", "x"),
		})
	}
	var watching sync.Mutex
	var counts []int32
	stop := tn.watchAll(world.hub, &addonsv1.AddonStackList{}, func(event watch.Event) {
		watching.Lock()
		defer watching.Unlock()
		if stack, ok := event.Object.(*addonsv1.AddonStack); ok && stack.Status.Clusters != nil {
			counts = append(counts, stack.Status.Clusters.Failed)
		}
	})
	tn.makeStack("platform", nil, tn.addon("hooked", hooked("1.0.0", controlplane.PodFate+": "+controlplane.PodFails)))
	seen := map[types.UID]bool{}
	job := &batchv1.Job{ObjectMeta: tn.named("pre-install")}
	await(t, s, job, patience, "it is tried again", func(j *batchv1.Job) error {
		if seen[j.UID] = true; len(seen) < 3 || j.Status.Failed == 0 {
			return fmt.Errorf("%d attempts", len(seen))
		}
		return nil
	})
	tn.settle()
	stop()
	watching.Lock()
	defer watching.Unlock()
	tn.Expect(slices.Compact(counts)).To(Equal([]int32{0, 1}))
	tn.Expect(tn.warningsOf("ClusterAddon", "HookFailed")).To(Equal(1), "that it still fails is no news")
	tn.awaitCluster("prod", "the hook is named", phase("hooked", addonsv1.AddonFailed, "HookFailed", "pre-install"))
	tn.changeAddon("platform", "hooked", func(a *addonsv1.Addon) { a.Chart.Path = hooked("1.0.1") })
	tn.awaitReady("platform", "its hook works")
}
