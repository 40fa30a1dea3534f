// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/message"
)

// Describe returns how far the rollout is, and what ends its phase. The rejection says which revision was rejected, and
// why; "" for none. Revisions are in a namespace.
func Describe(namespace string, in Input, d Decision, rejection string) string {
	annotate := func(annotation, value string) string {
		return fmt.Sprintf("kubectl annotate controllerrevision -n %s %s --overwrite %s=%s", namespace, in.Target, annotation, value)
	}
	if in.Target == "" {
		return rejection + ". There is no other revision to go to, so clusters stay as they are. Change the AddonStack, or take the annotation off"
	}
	wave := d.Waves[d.Wave]
	far := fmt.Sprintf("Wave %s: %d of %d clusters are ready at %s", wave.Name, wave.Done, wave.Total, in.Target)
	if len(wave.Failed) > 0 {
		far += fmt.Sprintf(", %d failed (%s)", len(wave.Failed), message.Clusters(wave.Failed))
	}
	all := "All clusters have " + in.Target
	if away := d.away(); len(away) > 0 {
		all += fmt.Sprintf(", but for %d on which nothing can be done (%s)", len(away), message.Clusters(away))
	}
	switch d.Phase {
	case addonsv1.RolloutProgressing:
	case addonsv1.RolloutSoaking:
		return fmt.Sprintf("%s. They have to stay so until %s", far, wave.ReadySince.Add(in.wave(wave.Name).Soak).UTC().Format(time.RFC3339))
	case addonsv1.RolloutWaitingForApproval:
		approved := strings.Join(sets.List(in.Approved.Union(sets.New(wave.Name))), ",")
		return fmt.Sprintf("Wave %s waits for approval: %s", wave.Name, annotate(addonsv1.RolloutApprovedAnnotation, approved))
	case addonsv1.RolloutWaitingForWindow:
		return fmt.Sprintf("%s. No window of spec.rollout.windows is open until %s", far, in.Stop.Until.UTC().Format(time.RFC3339))
	case addonsv1.RolloutWaitingForClusters:
		return fmt.Sprintf("%s, and nothing can be done on %s: so the wave has shown nothing. Bring them back, change spec.rollout.waves, or go on without: %s",
			far, orNone(wave.Away), annotate(addonsv1.RolloutApprovedAnnotation, "'"+All+"'"))
	case addonsv1.RolloutWaitingForInstances:
		return "These provider instances aren't as far with their clusters: " + strings.Join(in.lagging(d.WavesDone), ", ")
	case addonsv1.RolloutPaused:
		return far + ". No cluster starts: annotation cluster.x-k8s.io/paused of the AddonStack is set, or its spec.rollout isn't valid"
	case addonsv1.RolloutHalted:
		return fmt.Sprintf("%s. No cluster starts any more. Set them right, raise spec.rollout.maxFailed, or give the revision up: %s",
			d.Failure(), annotate(addonsv1.RolloutRejectedAnnotation, "why"))
	case addonsv1.RolloutRollingBack:
		return fmt.Sprintf("%s. %s", rejection, far)
	case addonsv1.RolloutRolledBack:
		return fmt.Sprintf("%s. %s. Change the AddonStack; or take annotation %s off, to try it again", rejection, all, addonsv1.RolloutRejectedAnnotation)
	case addonsv1.RolloutCompleted:
		return all
	}
	return far
}

// Failure returns how many clusters of the decision's wave failed.
func (d *Decision) Failure() string {
	wave := d.Waves[d.Wave]
	return fmt.Sprintf("%d of %d clusters of wave %s failed (%s), more than spec.rollout.maxFailed allows", len(wave.Failed), wave.Total, wave.Name, message.Clusters(wave.Failed))
}

func (d *Decision) away() (all []string) {
	for _, c := range d.Waves {
		all = append(all, c.Away...)
	}
	slices.Sort(all)
	return all
}

// wave returns the wave of a name.
func (in *Input) wave(name string) Wave {
	at := slices.IndexFunc(in.Strategy.Waves, func(w Wave) bool { return w.Name == name })
	return in.Strategy.Waves[at]
}

// lagging returns the names of instances that haven't done so many waves.
func (in *Input) lagging(waves int) (names []string) {
	for i := range in.Others {
		progress := ptr.Deref(in.Others[i].Rollout, addonsv1.RolloutProgress{})
		if progress.Revision != in.Target || int(progress.WavesDone) < waves {
			names = append(names, in.Others[i].WatchFilter)
		}
	}
	return names
}

func orNone(clusters []string) string {
	if len(clusters) == 0 {
		return "none of the others"
	}
	return message.Clusters(clusters)
}
