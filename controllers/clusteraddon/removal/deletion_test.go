// SPDX-License-Identifier: Apache-2.0

package removal_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/decide"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/gather"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/releases"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/removal"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/wanted"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/upgrade"
	"github.com/cluster-chandler/chandler/test/addons"
)

// TestLeaveForDeletion has an ingress that goes, what depends on it, and a CNI that stays.
func TestLeaveForDeletion(t *testing.T) {
	goes := &addonsv1.AddonLifecycle{OnClusterDelete: addonsv1.OnClusterDeleteRemove}
	record := func(name string, dependsOn ...string) deliver.Summary {
		return addons.Installed("platform", name, dependsOn...)
	}
	forged := record("forged", "site") // nobody has written it here
	c := addons.Given(t, record("ingress"), record("site", "ingress"), record("page", "site"), record("cni"), record("orphan"), addons.Installed("paused", "gateway"), addons.Installed("paused", "portal", "platform/ingress"))
	for _, r := range c.Installed {
		c.ClusterAddon.Status.Addons = append(c.ClusterAddon.Status.Addons, releases.Status(r, addonsv1.AddonReady))
	}
	slices.SortFunc(c.ClusterAddon.Status.Addons, func(a, b addonsv1.AddonStatus) int { return strings.Compare(a.Name, b.Name) })
	c.Installed[forged.Release] = forged
	c.Wanted = []wanted.Addon{
		{Stack: "platform", Addon: addonsv1.Addon{Name: "ingress", Namespace: "apps", Lifecycle: goes}, Spec: addonsv1.AddonStackSpec{Lifecycle: &addonsv1.StackLifecycle{HoldSeconds: ptr.To[int32](7)}}},
		{Stack: "platform", Addon: addonsv1.Addon{Name: "cni", Namespace: "apps"}},
		{Stack: "platform", Addon: addonsv1.Addon{Name: "orphan", Namespace: "apps", Lifecycle: goes}, Spec: addonsv1.AddonStackSpec{DeletionPolicy: addonsv1.DeletionPolicyOrphan}},
	}
	c.Wanted = append(c.Wanted, wanted.Addon{Stack: "paused", Paused: true, Addon: addonsv1.Addon{Name: "gateway", Namespace: "apps", Lifecycle: goes}})
	c.Paused = sets.New("paused")
	c.Unresolved = map[string]gather.Unresolved{"other": {State: decide.Undecided}}
	going, hold := removal.Going(&c.Observed)
	leave, stay := removal.Unwanted{Observed: &c.Observed, Proofs: c.Proofs}.Alone().BeforeDeletion(going)
	var leaving, kept []string
	for _, r := range leave {
		leaving = append(leaving, r.Name)
	}
	for _, s := range stay {
		kept = append(kept, s.Name)
	}
	if got := strings.Join(leaving, " ") + ", " + strings.Join(kept, " "); got != "page site ingress, forged cni gateway orphan portal" || hold != (upgrade.Hold{Time: 7 * time.Second}) {
		t.Errorf("%s: %+v", got, hold)
	}
	waiting := releases.Dependents(leave)
	for _, r := range leave {
		if _, waits := waiting[r.Release]; waits == (r.Name == "page") {
			t.Errorf("page has to leave first, and these wait: %v", waiting)
		}
	}
}
