// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"fmt"
	"maps"
	"slices"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/clusterstack"
)

// hookPoints are the points of an upgrade that hooks stand for, in the order of an upgrade.
var hookPoints = []struct {
	hook  string
	point addonsv1.UpgradePoint
}{
	{"BeforeClusterUpgrade", addonsv1.UpgradeBeforeControlPlane},
	{"BeforeControlPlaneUpgrade", addonsv1.UpgradeBeforeControlPlane},
	{"AfterControlPlaneUpgrade", addonsv1.UpgradeAfterControlPlane},
	{"BeforeWorkersUpgrade", addonsv1.UpgradeAfterControlPlane},
	{"AfterWorkersUpgrade", addonsv1.UpgradeAfterWorkers},
	{"AfterClusterUpgrade", addonsv1.UpgradeAfterWorkers},
}

// beforeDelete is the hook whose stages delete what is to go before its Cluster.
const beforeDelete = "BeforeClusterDelete"

// deliverAt gives add-ons their lifecycle, by the hooks whose stages have their charts, too. Of several
// the first counts. What isn't run of the hooks it notes.
func (r *reading) deliverAt(addons []addonsv1.Addon, hooks map[string][]clusterstack.Stage) {
	known := map[string]bool{clusterstack.AfterControlPlaneInitialized: true, beforeDelete: true}
	for _, p := range hookPoints {
		known[p.hook] = true
		r.eachStage(addons, p.hook, hooks[p.hook], clusterstack.ActionApply, func(l *addonsv1.AddonLifecycle) {
			if l.Upgrade == "" {
				l.Upgrade = p.point
			}
		})
	}
	r.eachStage(addons, beforeDelete, hooks[beforeDelete], clusterstack.ActionDelete, func(l *addonsv1.AddonLifecycle) {
		l.OnClusterDelete = addonsv1.OnClusterDeleteRemove
	})
	for _, hook := range slices.Sorted(maps.Keys(hooks)) {
		if !known[hook] {
			r.note(notRun(hook), namesOf(hooks[hook]))
		}
	}
}

// eachStage calls set with the lifecycle of the add-on of each stage that does the action, and notes
// all other stages.
func (r *reading) eachStage(addons []addonsv1.Addon, hook string, stages []clusterstack.Stage, action clusterstack.Action, set func(*addonsv1.AddonLifecycle)) {
	var others, conditions []string
	for _, stage := range stages {
		at := slices.IndexFunc(addons, func(a addonsv1.Addon) bool { return a.Name == stage.Name })
		if at < 0 || stage.Action != action {
			others = append(others, stage.Name)
			continue
		}
		if addons[at].Lifecycle == nil {
			addons[at].Lifecycle = &addonsv1.AddonLifecycle{}
		}
		set(addons[at].Lifecycle)
		if stage.Before != nil || stage.After != nil {
			conditions = append(conditions, stage.Name)
		}
	}
	r.note(notRun(hook), others)
	r.note(fmt.Sprintf("conditions of stages of %s, which aren't waited for", hook), conditions)
}

func notRun(hook string) string { return fmt.Sprintf("not run: stages of %.64s", hook) }
