// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/controlplane"
	"github.com/cluster-chandler/chandler/test/long"
)

// TestDeletedStacksSendNoWarning deletes stacks that are all right, 20 at once, 100 in all. Each third
// one leaves its add-on behind. One stack stays, and its add-ons with it.
func TestDeletedStacksSendNoWarning(t *testing.T) {
	long.Test(t)
	t.Parallel()
	g := NewWithT(t)
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
		g.Expect(tn.warnings()).To(BeEmpty())
	}
}

// TestFailedHookStaysFailed watches a stack whose hook fails, until the hook has been tried three times.
func TestFailedHookStaysFailed(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	tn, s := newProd(t, 0)
	path := tn.writeChart("hooked", "1.0.0", chart{
		"templates/hook.yaml": hookJob("pre-install", controlplane.PodFate+": "+controlplane.PodFails),
		"templates/text.yaml": configMap("text", "x"),
	})
	var watching sync.Mutex
	var counts []int32
	stop := tn.watchAll(world.hub, &addonsv1.AddonStackList{}, func(event watch.Event) {
		watching.Lock()
		defer watching.Unlock()
		if stack, ok := event.Object.(*addonsv1.AddonStack); ok && stack.Status.Clusters != nil {
			counts = append(counts, stack.Status.Clusters.Failed)
		}
	})
	tn.makeStack("platform", nil, tn.addon("hooked", path))
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
	g.Expect(slices.Compact(counts)).To(Equal([]int32{0, 1}))
	g.Expect(tn.warningsOf("ClusterAddon", "HookFailed")).To(Equal(1), "that it still fails is no news")
}
