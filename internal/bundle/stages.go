// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/utils/ptr"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/clusterstack"
	"github.com/cluster-chandler/chandler/internal/failure"
)

// stages makes an add-on of each stage that applies a chart. The stack doesn't want charts that a
// stage deletes, or that no stage names any more, and so they are removed. If several stages have
// the same chart, the last one counts.
func (r *reading) stages(stages []clusterstack.Stage) ([]addonsv1.Addon, error) {
	last := map[string]int{}
	for i, stage := range stages {
		last[stage.Name] = i
	}
	addons := make([]addonsv1.Addon, 0, len(stages))
	var repeated, deleted, unwaited []string
	for i, stage := range stages {
		switch {
		case last[stage.Name] != i:
			repeated = append(repeated, stage.Name)
			continue
		case stage.Action == clusterstack.ActionDelete:
			deleted = append(deleted, stage.Name)
			if len(stage.Before) > 0 || len(stage.After) > 0 {
				unwaited = append(unwaited, stage.Name)
			}
			continue
		}
		addon, err := r.staged(stage)
		if err != nil {
			return nil, ofStage(stage.Name, err)
		}
		if len(addons) > 0 {
			addon.DependsOn = []string{addons[len(addons)-1].Name}
		}
		addons = append(addons, addon)
	}
	if len(addons) == 0 && len(deleted) == 0 {
		return nil, refuse("%s: addonStages.%s has no stages, so the stack has no add-ons", clusterstack.StagesFile, clusterstack.AfterControlPlaneInitialized)
	}
	r.note("removed if installed", deleted)
	r.note("conditions of stages that delete, which aren't waited for", unwaited)
	r.note("listed more than once, the last stage counts", repeated)
	return addons, nil
}

// staged makes the add-on of a stage.
func (r *reading) staged(stage clusterstack.Stage) (addonsv1.Addon, error) {
	addon, err := r.addon(stage.Name, r.archive+"/"+stage.Name, r.archive+"/"+stage.Name+"/"+clusterstack.OverwriteFile)
	addon.Preconditions, addon.Postconditions = stage.Before, stage.After
	return addon, err
}

// addon makes one add-on, as the Cluster Stack Operator would template it.
func (r *reading) addon(name, chart, template string) (addonsv1.Addon, error) {
	digest, err := r.ChartDigest(chart)
	if err != nil {
		return addonsv1.Addon{}, ofRelease(err)
	}
	addon := addonsv1.Addon{
		Name:            name,
		Namespace:       releaseNamespace,
		CreateNamespace: ptr.To(false), // it is in every cluster
		Chart:           addonsv1.ChartSource{Path: chart, Digest: digest},
	}
	if name != releaseName {
		addon.TemplateReleaseName = releaseName
	}
	values, _, err := r.Read(template)
	switch {
	case err != nil:
		return addonsv1.Addon{}, ofRelease(err)
	case len(values) > maxTemplate:
		return addonsv1.Addon{}, refuse("%s has %d bytes, at most %d", template, len(values), maxTemplate)
	case strings.TrimSpace(string(values)) != "":
		addon.ValuesTemplate, addon.ValuesTemplateMode = string(values), addonsv1.ValuesTemplateModeClusterStack
	}
	return addon, nil
}

// ofStage returns an error of a chart with the stage that it is of. An error of the release names its place itself.
func ofStage(name string, err error) error {
	failed, ok := errors.AsType[*failure.Error](err)
	if !ok || failed.Reason == addonsv1.InvalidSourceReason {
		return err
	}
	located := *failed
	located.Subject = strings.TrimSuffix(fmt.Sprintf("%s: stage %s: %s", clusterstack.StagesFile, name, failed.Subject), ": ")
	return &located
}

// ofRelease returns an error of a chart as the release's: no field of the stack names the chart,
// and if it isn't there, it won't come by itself.
func ofRelease(err error) error {
	failed, ok := errors.AsType[*failure.Error](err)
	if !ok {
		return err
	}
	inRelease := *failed
	inRelease.Field = ""
	if inRelease.Reason == failure.ArtifactNotFound {
		inRelease.Reason = failure.ArtifactInvalid
	}
	return &inRelease
}

func namesOf(stages []clusterstack.Stage) []string {
	var names []string
	for _, stage := range stages {
		names = append(names, stage.Name)
	}
	return names
}
