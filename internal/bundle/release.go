// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"k8s.io/utils/ptr"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/abridge"
	"github.com/cluster-chandler/chandler/internal/clusterstack"
)

const (
	// releaseName is that of all charts of a release, as their templates see it.
	releaseName = "cluster-addon"
	// releaseNamespace is where the add-ons of a release go to.
	releaseNamespace = "kube-system"
	// maxTemplate is the size of a values template, as of addons[].valuesTemplate.
	maxTemplate = 256 << 10 // bytes
	// maxTemplates is the size of all together: a revision is kept in one object.
	maxTemplates = 768 << 10 // bytes
)

// stem starts the names of a release's archives: provider, name, and the minor
// version of Kubernetes.
var stem = regexp.MustCompile(`^[a-z0-9]+-[a-z0-9]+-\d+-\d+$`)

// reading is a Cluster Stack release that is being read.
type reading struct {
	Files
	root     string // of the release in the bundle, "" or with a slash at its end
	metadata clusterstack.Metadata
	archive  string // of the add-ons
	notes    []string
}

// release makes the add-ons of a Cluster Stack release.
func release(files Files, adoption addonsv1.AdoptionPolicy) (*Expansion, error) {
	r := &reading{Files: files}
	if err := r.open(); err != nil {
		return nil, err
	}
	addons, err := r.addons()
	if err != nil {
		return nil, err
	}
	size := 0
	for i := range addons {
		size += len(addons[i].ValuesTemplate)
		addons[i].AdoptionPolicy = adoption
	}
	if size > maxTemplates {
		return nil, failure("the values templates of the release have %d bytes together, at most %d", size, maxTemplates)
	}
	r.note("unknown keys in "+clusterstack.MetadataFile, r.metadata.Unknown)
	return &Expansion{Addons: addons, Notes: r.notes}, nil
}

// open finds the release's root, its metadata and the archive of its add-ons.
func (r *reading) open() error {
	names := r.Names()
	if !slices.Contains(names, clusterstack.MetadataFile) {
		r.root = onlyDirectory(names)
	}
	data, found, err := r.Read(r.root + clusterstack.MetadataFile)
	if err != nil {
		return err
	}
	if !found {
		return failure("the bundle has no %s, so it is no release of a Cluster Stack; list the charts in spec.addons, or name a release in spec.source", clusterstack.MetadataFile)
	}
	if r.metadata, err = clusterstack.ParseMetadata(data); err != nil {
		return &Error{err}
	}
	if r.archive, err = r.findArchive(names); err != nil {
		return err
	}
	about := "Cluster Stack release " + r.stack()
	if r.metadata.Kubernetes != "" {
		about += " for Kubernetes " + r.metadata.Kubernetes
	}
	r.notes = append(r.notes, about)
	return nil
}

// onlyDirectory is the only one at the root, with a slash; "" if there are several,
// or files beside it.
func onlyDirectory(names []string) string {
	if len(names) == 0 {
		return ""
	}
	top, _, below := strings.Cut(names[0], "/")
	if !below || slices.ContainsFunc(names, func(name string) bool { return !strings.HasPrefix(name, top+"/") }) {
		return ""
	}
	return top + "/"
}

// findArchive finds the archive of the add-ons, in the version that metadata.yaml says.
func (r *reading) findArchive(names []string) (string, error) {
	suffix := "-cluster-addon-" + r.metadata.ClusterAddon + ".tgz"
	var found []string
	for _, name := range names {
		file, in := strings.CutPrefix(name, r.root)
		if front, ok := strings.CutSuffix(file, suffix); in && ok && stem.MatchString(front) {
			found = append(found, name)
		}
	}
	if len(found) != 1 {
		return "", failure("the bundle has %d archives named <provider>-<name>-<major>-<minor>%s, not one; %s says that version of the add-ons",
			len(found), suffix, clusterstack.MetadataFile)
	}
	return found[0], nil
}

// stack is the name of the release: the tag that it was published with.
func (r *reading) stack() string {
	front, _, _ := strings.Cut(path.Base(r.archive), "-cluster-addon-")
	return front + "-" + strings.ReplaceAll(r.metadata.ClusterStack.String(), ".", "-")
}

// addons are those of the stages, or of the one chart of a release without stages.
func (r *reading) addons() ([]addonsv1.Addon, error) {
	data, staged, err := r.Read(r.root + clusterstack.StagesFile)
	if err != nil {
		return nil, err
	}
	if !staged {
		addon, err := r.addon(releaseName, r.archive, r.root+clusterstack.ValuesFile)
		return []addonsv1.Addon{addon}, err
	}
	stages, err := clusterstack.ParseStages(data)
	if err != nil {
		return nil, &Error{err}
	}
	addons, err := r.stages(stages.Hooks[clusterstack.AfterControlPlaneInitialized])
	if err != nil {
		return nil, err
	}
	for _, hook := range slices.Sorted(maps.Keys(stages.Hooks)) {
		if hook != clusterstack.AfterControlPlaneInitialized {
			r.note(fmt.Sprintf("not run: stages of %.64s", hook), namesOf(stages.Hooks[hook]))
		}
	}
	if _, unused, err := r.Read(r.root + clusterstack.ValuesFile); err == nil && unused {
		r.notes = append(r.notes, fmt.Sprintf("not used: %s, which is for releases without %s", clusterstack.ValuesFile, clusterstack.StagesFile))
	}
	r.note("unknown keys in "+clusterstack.StagesFile, stages.Unknown)
	return addons, nil
}

// stages makes an add-on of each stage that applies a chart. What a stage deletes,
// and what no stage names any more, the stack doesn't want, and so it is removed.
// Of several stages for one chart the last one counts.
func (r *reading) stages(stages []clusterstack.Stage) ([]addonsv1.Addon, error) {
	last := map[string]int{}
	for i, stage := range stages {
		last[stage.Name] = i
	}
	var addons []addonsv1.Addon
	var repeated, deleted, unwaited []string
	for i, stage := range stages {
		switch {
		case last[stage.Name] != i:
			repeated = append(repeated, stage.Name)
			continue
		case stage.Action == clusterstack.ActionDelete:
			deleted = append(deleted, stage.Name)
			if stage.Before != nil || stage.After != nil {
				unwaited = append(unwaited, stage.Name)
			}
			continue
		}
		addon, err := r.addon(stage.Name, r.archive+"/"+stage.Name, r.archive+"/"+stage.Name+"/"+clusterstack.OverwriteFile)
		if err != nil {
			return nil, err
		}
		addon.Preconditions, addon.Postconditions = condition(stage.Before), condition(stage.After)
		if len(addons) > 0 {
			addon.DependsOn = []string{addons[len(addons)-1].Name}
		}
		addons = append(addons, addon)
	}
	if len(addons) == 0 {
		return nil, failure("%s: addonStages.%s applies no chart, so the stack has no add-ons", clusterstack.StagesFile, clusterstack.AfterControlPlaneInitialized)
	}
	r.note("removed if installed", deleted)
	r.note("conditions of stages that delete, which aren't waited for", unwaited)
	r.note("listed more than once, the last stage counts", repeated)
	return addons, nil
}

// addon makes one add-on, as the Cluster Stack Operator would template it.
func (r *reading) addon(name, chart, template string) (addonsv1.Addon, error) {
	digest, err := r.ChartDigest(chart)
	if err != nil {
		return addonsv1.Addon{}, fmt.Errorf("stage %s: %w", name, err)
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
		return addonsv1.Addon{}, fmt.Errorf("stage %s: %w", name, err)
	case len(values) > maxTemplate:
		return addonsv1.Addon{}, failure("%s has %d bytes, at most %d", template, len(values), maxTemplate)
	case strings.TrimSpace(string(values)) != "":
		addon.ValuesTemplate, addon.ValuesTemplateMode = string(values), addonsv1.ValuesTemplateModeClusterStack
	}
	return addon, nil
}

// note says something about names, if there are any.
func (r *reading) note(about string, names []string) {
	const most = 8
	if len(names) > 0 {
		r.notes = append(r.notes, about+": "+abridge.Join(names, ", ", most))
	}
}

func condition(wait *clusterstack.Wait) []addonsv1.ObjectsCondition {
	if wait == nil {
		return nil
	}
	made := addonsv1.ObjectsCondition{Expression: wait.Expression}
	for _, object := range wait.Objects {
		made.Objects = append(made.Objects, addonsv1.ConditionObject(object))
	}
	return []addonsv1.ObjectsCondition{made}
}

func namesOf(stages []clusterstack.Stage) []string {
	var names []string
	for _, stage := range stages {
		names = append(names, stage.Name)
	}
	return names
}
