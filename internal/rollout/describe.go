// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/message"
)

// Describe returns how far the rollout of a stack is, and what ends its phase. The rejection says which revision was
// rejected, and why; "" for none.
func Describe(of types.NamespacedName, in Input, d Decision, rejection string) string {
	command := func(verb, more string) string {
		return strings.TrimSpace(fmt.Sprintf("kubectl chandler rollout %s -n %s %s %s", verb, of.Namespace, of.Name, more))
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
	if in.Mode == Returning {
		all = "No cluster has " + in.Target + " any more"
	}
	if away := d.away(); len(away) > 0 {
		all += fmt.Sprintf(", but for %d on which nothing can be done (%s)", len(away), message.Clusters(away))
	}
	switch d.Phase {
	case addonsv1.RolloutProgressing:
	case addonsv1.RolloutSoaking:
		return fmt.Sprintf("%s. They have to stay so until %s", far, d.SoaksUntil.UTC().Format(time.RFC3339))
	case addonsv1.RolloutWaitingForApproval:
		text := fmt.Sprintf("Wave %s of %s waits for approval: %s", wave.Name, in.Target, command("approve", wave.Name))
		if in.Plan != "" {
			text += ". " + in.Plan
		}
		return text
	case addonsv1.RolloutWaitingForWindow:
		return fmt.Sprintf("%s. No window of spec.rollout.windows is open until %s", far, in.Stop.Until.UTC().Format(time.RFC3339))
	case addonsv1.RolloutWaitingForClusters:
		promote := command("promote", "")
		switch {
		case len(in.Clusters) == 0:
			return "No cluster has been Ready at " + in.Target + ": the AddonStack selects none"
		case wave.Total == 0:
			return fmt.Sprintf("No cluster is in wave %s. Label one, or go on without: %s. If no cluster has started, correct the wave in spec.rollout.waves, or set optional: true there", wave.Name, promote)
		}
		return fmt.Sprintf("%s. The wave has no reachable cluster (%s). Make one reachable, or go on without: %s", far, orNone(wave.Away), promote)
	case addonsv1.RolloutWaitingForInstances:
		return "These provider instances aren't as far with their clusters: " + strings.Join(in.lagging(len(d.Over)), ", ") +
			". To go on without waiting, and without soaks: " + command("promote", "--full")
	case addonsv1.RolloutPaused:
		return far + ". No cluster starts: " + in.Stop.Why
	case addonsv1.RolloutHalted:
		return in.describeHalt(&d, command("resume", ""), command("reject", "--reason WHY"))
	case addonsv1.RolloutRollingBack:
		return fmt.Sprintf("%s. %d of %d clusters don't have it any more", rejection, wave.Updated, wave.Total)
	case addonsv1.RolloutRolledBack:
		return fmt.Sprintf("%s. %s. Change the AddonStack, or try it again: %s", rejection, all, command("retry", ""))
	case addonsv1.RolloutCompleted:
		return all
	}
	return far
}

// describeHalt returns why no cluster starts any more, and the ways out.
func (in *Input) describeHalt(d *Decision, resume, reject string) string {
	wave := d.Waves[d.Wave]
	switch {
	case in.Replaced:
		return in.Target + " can't be brought to other clusters: values that it was made with were replaced. Change the AddonStack"
	case len(wave.Failed) == 0 && in.failed(wave) > 0:
		return fmt.Sprintf("%d of %d clusters of wave %s failed, all of other instances, more than spec.rollout.maxFailed allows. No cluster starts any more. Set them right and resume: %s. Or give the revision up: %s",
			in.failed(wave), in.total(wave), wave.Name, resume, reject)
	case len(wave.Failed) == 0 && (in.Halted == nil || in.Halted.Failed == 0):
		return "A person halted the rollout. To resume it: " + resume
	case len(wave.Failed) == 0:
		return fmt.Sprintf("%d clusters of wave %s failed, more than spec.rollout.maxFailed allows. No cluster starts any more, though they don't fail now. To resume: %s. To give the revision up: %s",
			in.Halted.Failed, wave.Name, resume, reject)
	case in.Mode == Returning:
		return fmt.Sprintf("%s on their way back. No cluster starts any more. Set them right, and resume: %s", d.Failure(), resume)
	}
	return fmt.Sprintf("%s. No cluster starts any more. Set them right and resume: %s. Or raise spec.rollout.maxFailed, or give the revision up: %s", d.Failure(), resume, reject)
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
