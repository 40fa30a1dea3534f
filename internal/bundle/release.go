// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"fmt"
	"maps"
	"slices"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/clusterstack"
	"github.com/cluster-chandler/chandler/internal/message"
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

// reading is a Cluster Stack release that is being read.
type reading struct {
	Files
	from     *addonsv1.BundleSource
	root     string // of the release in the bundle, "" or with a slash at its end
	metadata clusterstack.Metadata
	archive  string // of the add-ons
	notes    []string
}

// release makes the add-ons of a Cluster Stack release.
func release(files Files, from *addonsv1.BundleSource) (*Expansion, error) {
	r := &reading{Files: files, from: from}
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
		addons[i].AdoptionPolicy = from.AdoptionPolicy
	}
	if size > maxTemplates {
		return nil, refuse("the values templates of the release have %d bytes together, at most %d", size, maxTemplates)
	}
	r.note("unknown keys in "+clusterstack.MetadataFile, r.metadata.Unknown)
	return &Expansion{Addons: addons, Notes: r.notes}, nil
}

// addons returns those of the stages, or of the one chart of a release without stages.
func (r *reading) addons() ([]addonsv1.Addon, error) {
	data, staged, err := r.ReadYAML(r.root + clusterstack.StagesFile)
	if err != nil {
		return nil, err
	}
	if !staged {
		addon, err := r.addon(releaseName, r.archive, r.root+clusterstack.ValuesFile)
		return []addonsv1.Addon{addon}, err
	}
	stages, err := clusterstack.ParseStages(data)
	if err != nil {
		return nil, refuse("%w", err)
	}
	addons, err := r.stages(stages.Hooks[clusterstack.AfterControlPlaneInitialized])
	if err != nil {
		return nil, err
	}
	if addons, err = r.deliverAt(addons, stages.Hooks); err != nil {
		return nil, err
	}
	for _, hook := range slices.Sorted(maps.Keys(stages.Faults)) {
		if slices.Contains(beforeUpgrade, hook) { // the upgrade would go on without its checks
			return nil, refuse("%s: stages of %s: %s", clusterstack.StagesFile, hook, stages.Faults[hook])
		}
		r.notes = append(r.notes, fmt.Sprintf("not run, and couldn't be: stages of %.64s: %.200s", hook, stages.Faults[hook]))
	}
	if _, unused, err := r.Read(r.root + clusterstack.ValuesFile); err == nil && unused {
		r.notes = append(r.notes, fmt.Sprintf("not used: %s, which is for releases without %s", clusterstack.ValuesFile, clusterstack.StagesFile))
	}
	r.note("unknown keys in "+clusterstack.StagesFile, stages.Unknown)
	return addons, nil
}

// note adds a note about names, if there are any.
func (r *reading) note(about string, names []string) {
	const most = 8
	if len(names) > 0 {
		r.notes = append(r.notes, about+": "+message.List(names, ", ", most))
	}
}
