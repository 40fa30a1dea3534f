// SPDX-License-Identifier: Apache-2.0

package clusterstack

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"

	"sigs.k8s.io/yaml"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/expression"
)

// AfterControlPlaneInitialized is the hook whose stages make up a cluster's add-ons.
const AfterControlPlaneInitialized = "AfterControlPlaneInitialized"

// Bounds of clusteraddon.yaml.
const (
	maxStages          = 64 // of one hook
	maxObjects         = 16 // of one condition
	maxExpressionBytes = 4096
)

// Action is what a stage does with its chart.
type Action string

// Actions of stages.
const (
	ActionApply  Action = "apply"
	ActionDelete Action = "delete"
)

// Stages are the stages of a release, by the lifecycle hook that runs them.
type Stages struct {
	Hooks map[string][]Stage
	// Faults of stages of other hooks than AfterControlPlaneInitialized, by their hook, which isn't in Hooks then.
	Faults map[string]string
	// Unknown keys, as paths.
	Unknown []string
}

// Stage applies or deletes one chart of the add-on archive.
type Stage struct {
	// Name of the chart's directory in the add-on archive.
	Name   string
	Action Action
	// Before and After hold the stage up until they are true. At most one each.
	Before, After []addonsv1.ObjectsCondition
}

type stagesFile struct {
	APIVersion          string                     `json:"apiVersion"`
	ClusterAddonVersion string                     `json:"clusterAddonVersion"`
	AddonStages         map[string]json.RawMessage `json:"addonStages"`
}

type stageFile struct {
	Name                 string    `json:"name"`
	Action               string    `json:"action"`
	WaitForPreCondition  *waitFile `json:"waitForPreCondition"`
	WaitForPostCondition *waitFile `json:"waitForPostCondition"`
}

type waitFile struct {
	Objects    []addonsv1.ConditionObject `json:"objects"`
	Conditions string                     `json:"conditions"`
}

var (
	stageName  = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,51}[a-z0-9])?$`)
	identifier = regexp.MustCompile(`^[_a-zA-Z][_a-zA-Z0-9]{0,62}$`)
)

// ParseStages reads clusteraddon.yaml. Hooks that aren't known are kept. The faults of hooks that
// aren't run are only reported: the operator doesn't look at such hooks.
func ParseStages(data []byte) (Stages, error) {
	file := stagesFile{}
	unknown, err := decode(data, &file)
	if err != nil {
		return Stages{}, fmt.Errorf("%s: %w", StagesFile, err)
	}
	if refused := expression.CheckTogether(conditionsOf(file.AddonStages)); refused != "" {
		return Stages{}, fmt.Errorf("%s: addonStages: %s", StagesFile, refused)
	}
	stages := Stages{Hooks: map[string][]Stage{}, Faults: map[string]string{}, Unknown: unknown}
	for _, hook := range slices.Sorted(maps.Keys(file.AddonStages)) {
		below := fmt.Sprintf("addonStages.%.64s", hook)
		read, unknown, err := readHook(below, file.AddonStages[hook])
		switch {
		case err == nil:
			stages.Hooks[hook] = read
			stages.Unknown = append(stages.Unknown, unknown...)
		case hook == AfterControlPlaneInitialized:
			return Stages{}, fmt.Errorf("%s: %s: %w", StagesFile, below, err)
		default:
			stages.Faults[hook] = err.Error()
		}
	}
	return stages, nil
}

// conditionsOf returns all expressions of stages, by hook, that can be read.
func conditionsOf(hooks map[string]json.RawMessage) (all []string) {
	for _, data := range hooks {
		var listed []stageFile
		if yaml.Unmarshal(data, &listed) != nil {
			continue // readHook says why
		}
		for _, s := range listed {
			for _, wait := range []*waitFile{s.WaitForPreCondition, s.WaitForPostCondition} {
				if wait != nil && wait.Conditions != "" {
					all = append(all, wait.Conditions)
				}
			}
		}
	}
	return all
}

// readHook reads the stages of one hook, and finds the keys in them that aren't known.
func readHook(path string, data []byte) (stages []Stage, unknown []string, err error) {
	var listed []stageFile
	if err := yaml.Unmarshal(data, &listed); err != nil { // which makes texts of numbers
		return nil, nil, fmt.Errorf("a field has the wrong type: %w", err)
	}
	stages, err = stagesOf(listed)
	return stages, unknownKeys(path, data, &listed), err
}

func stagesOf(listed []stageFile) ([]Stage, error) {
	if len(listed) > maxStages {
		return nil, fmt.Errorf("%d stages, at most %d", len(listed), maxStages)
	}
	stages := make([]Stage, 0, len(listed))
	for i, s := range listed {
		if !stageName.MatchString(s.Name) {
			return nil, fmt.Errorf("stage %d: name %.64q isn't a DNS label of at most 53 characters", i, s.Name)
		}
		action := Action(s.Action)
		if action != ActionApply && action != ActionDelete {
			return nil, fmt.Errorf("stage %s: action %.64q is neither %s nor %s", s.Name, s.Action, ActionApply, ActionDelete)
		}
		before, err := waitOf(s.WaitForPreCondition)
		if err != nil {
			return nil, fmt.Errorf("stage %s: waitForPreCondition: %w", s.Name, err)
		}
		after, err := waitOf(s.WaitForPostCondition)
		if err != nil {
			return nil, fmt.Errorf("stage %s: waitForPostCondition: %w", s.Name, err)
		}
		stages = append(stages, Stage{Name: s.Name, Action: action, Before: before, After: after})
	}
	return stages, nil
}

func waitOf(listed *waitFile) ([]addonsv1.ObjectsCondition, error) {
	switch {
	case listed == nil || listed.Conditions == "" && len(listed.Objects) == 0:
		return nil, nil
	case listed.Conditions == "":
		return nil, fmt.Errorf("it has objects, but no conditions")
	case len(listed.Conditions) > maxExpressionBytes:
		return nil, fmt.Errorf("conditions has %d bytes, at most %d", len(listed.Conditions), maxExpressionBytes)
	case len(listed.Objects) > maxObjects:
		return nil, fmt.Errorf("%d objects, at most %d", len(listed.Objects), maxObjects)
	}
	wait := addonsv1.ObjectsCondition{Objects: listed.Objects, Expression: listed.Conditions}
	for i, object := range listed.Objects {
		if !identifier.MatchString(object.Key) {
			return nil, fmt.Errorf("objects[%d]: key %.64q can't be a variable of CEL", i, object.Key)
		}
		if slices.ContainsFunc(listed.Objects[:i], func(other addonsv1.ConditionObject) bool { return other.Key == object.Key }) {
			return nil, fmt.Errorf("objects[%d]: key %s is there twice", i, object.Key)
		}
		if object.APIVersion == "" || object.Kind == "" || object.Name == "" {
			return nil, fmt.Errorf("objects[%d]: apiVersion, kind and name are required", i)
		}
		if wrong := expression.CheckObject(object); wrong != nil {
			return nil, fmt.Errorf("objects[%d]: %w", i, wrong)
		}
	}
	if err := expression.Check(&wait); err != nil {
		return nil, fmt.Errorf("conditions: %w", err)
	}
	return []addonsv1.ObjectsCondition{wait}, nil
}
