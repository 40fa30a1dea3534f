// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/clusterstack"
	"github.com/cluster-chandler/chandler/internal/failure"
)

// beforeUpgrade are the hooks that Cluster API asks before an upgrade begins.
var beforeUpgrade = []string{"BeforeClusterUpgrade", "BeforeControlPlaneUpgrade"}

// hookPoints are the points of an upgrade that hooks stand for, in the order of an upgrade.
var hookPoints = []struct {
	hook  string
	point addonsv1.UpgradePoint
}{
	{beforeUpgrade[0], addonsv1.UpgradeBeforeControlPlane},
	{beforeUpgrade[1], addonsv1.UpgradeBeforeControlPlane},
	{"AfterControlPlaneUpgrade", addonsv1.UpgradeAfterControlPlane},
	{"BeforeWorkersUpgrade", addonsv1.UpgradeAfterControlPlane},
	{"AfterWorkersUpgrade", addonsv1.UpgradeAfterWorkers},
	{"AfterClusterUpgrade", addonsv1.UpgradeAfterWorkers},
}

// beforeDelete is the hook whose stages delete what is to go before its Cluster.
const beforeDelete = "BeforeClusterDelete"

// deliverAt gives add-ons their lifecycle, by the hooks whose stages have their charts, too. The first of several hooks
// counts. It adds charts that are applied, and deleted again, before an upgrade. It notes the parts of the hooks that
// aren't run.
func (r *reading) deliverAt(addons []addonsv1.Addon, hooks map[string][]clusterstack.Stage) ([]addonsv1.Addon, error) {
	addons, err := r.preflights(addons, hooks)
	if err != nil {
		return nil, err
	}
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
	return addons, nil
}

// preflights adds an add-on of each chart that a hook before the upgrade applies and later deletes. The charts that the
// hook applies between depend on it.
func (r *reading) preflights(addons []addonsv1.Addon, hooks map[string][]clusterstack.Stage) ([]addonsv1.Addon, error) {
	first := 0 // what others depend on is listed before them
	for _, hook := range beforeUpgrade {
		stages := hooks[hook]
		for i, stage := range stages {
			deleted := slices.IndexFunc(stages[i:], func(s clusterstack.Stage) bool { return s.Name == stage.Name && s.Action == clusterstack.ActionDelete })
			if stage.Action != clusterstack.ActionApply || deleted < 0 || addonAt(addons, stage.Name) >= 0 {
				continue
			}
			addon, err := r.staged(stage)
			if failed, ok := errors.AsType[*failure.Error](err); ok && failed.Reason == failure.ArtifactInvalid {
				r.notes = append(r.notes, fmt.Sprintf("not run, and couldn't be: %.200s of %s: %.200s", stage.Name, hook, failed))
				continue // a cluster that isn't upgraded does without
			}
			if err != nil {
				return nil, ofStage(stage.Name, err)
			}
			addon.Lifecycle = &addonsv1.AddonLifecycle{Present: addonsv1.PresentBeforeUpgrade}
			for _, between := range stages[i+1 : i+deleted] {
				if at := addonAt(addons, between.Name); at >= 0 && between.Action == clusterstack.ActionApply {
					addons[at].DependsOn = append(addons[at].DependsOn, addon.Name)
				}
			}
			addons = slices.Insert(addons, first, addon)
			first++
		}
	}
	return addons, nil
}

func addonAt(addons []addonsv1.Addon, name string) int {
	return slices.IndexFunc(addons, func(a addonsv1.Addon) bool { return a.Name == name })
}

// eachStage calls set with the lifecycle of the add-on of each stage that does the action, and notes
// all other stages.
func (r *reading) eachStage(addons []addonsv1.Addon, hook string, stages []clusterstack.Stage, action clusterstack.Action, set func(*addonsv1.AddonLifecycle)) {
	var others, conditions, earlier []string
	last := -1
	for _, stage := range stages {
		at := addonAt(addons, stage.Name)
		if at >= 0 && addons[at].Lifecycle != nil && addons[at].Lifecycle.Present != "" {
			continue
		}
		if at < 0 || stage.Action != action {
			others = append(others, stage.Name)
			continue
		}
		if at < last && action == clusterstack.ActionApply {
			earlier = append(earlier, stage.Name)
		}
		last = max(last, at)
		if addons[at].Lifecycle == nil {
			addons[at].Lifecycle = &addonsv1.AddonLifecycle{}
		}
		set(addons[at].Lifecycle)
		if len(stage.Before) > 0 || len(stage.After) > 0 {
			conditions = append(conditions, stage.Name)
		}
	}
	r.note(notRun(hook), others)
	r.note(fmt.Sprintf("in the order of %s, not in that of %s", clusterstack.AfterControlPlaneInitialized, hook), earlier)
	r.note(fmt.Sprintf("conditions of stages of %s, which aren't waited for", hook), conditions)
}

func notRun(hook string) string { return fmt.Sprintf("not run: stages of %.64s", hook) }
