// SPDX-License-Identifier: Apache-2.0

package dependency

import (
	"crypto/sha256"
	"encoding/json"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"sigs.k8s.io/yaml"

	"github.com/cluster-chandler/chandler/internal/render"
	"github.com/cluster-chandler/chandler/internal/source/artifact"
)

// Files that say what a chart depends on. Charts of apiVersion v1 have them apart.
const (
	lockFile         = "Chart.lock"
	RequirementsFile = "requirements.yaml"
	requirementsLock = "requirements.lock"
)

// requirements are the dependencies that a chart declares, and their lock.
type requirements struct {
	chart    string // its name and version
	file     string // that declares them
	lockFile string // that locks them
	declared []*chart.Dependency
	lock     *chart.Lock // nil: there is none
	legacy   bool        // apiVersion v1
}

// readRequirements reads those of the chart whose files have names that start with
// within. What can't be read as Helm does has none: to say what is wrong with a chart
// is the renderer's business.
func readRequirements(files []render.File, within string) requirements {
	var metadata chart.Metadata
	if !decode(artifact.Find(files, within+artifact.ChartFile), &metadata) {
		return requirements{}
	}
	if metadata.APIVersion == "" {
		metadata.APIVersion = chart.APIVersionV1
	}
	r := requirements{file: artifact.ChartFile, lockFile: lockFile, legacy: metadata.APIVersion == chart.APIVersionV1}
	if decode(artifact.Find(files, within+RequirementsFile), &metadata) {
		r.file = RequirementsFile // whatever the apiVersion, as in Helm's loader
	}
	if metadata.Validate() != nil || len(metadata.Dependencies) == 0 {
		return requirements{}
	}
	for _, name := range []string{lockFile, requirementsLock} { // the latter counts, as in Helm's loader
		var lock chart.Lock
		if decode(artifact.Find(files, within+name), &lock) {
			r.lock, r.lockFile = &lock, name
		}
	}
	if r.lock == nil && r.legacy {
		r.lockFile = requirementsLock
	}
	r.chart = metadata.Name + " " + metadata.Version
	r.declared = metadata.Dependencies
	return r
}

// inSync tells whether the lock was made for what is declared, as Helm tells it.
func (r requirements) inSync() bool {
	if r.lock == nil {
		return false
	}
	if sum, err := sumOf([2][]*chart.Dependency{r.declared, r.lock.Dependencies}); err == nil && sum == r.lock.Digest {
		return true
	}
	// Helm 2 took the sum of what is declared alone.
	sum, err := sumOf(map[string][]*chart.Dependency{"dependencies": r.declared})
	return r.legacy && err == nil && sum == r.lock.Digest
}

func sumOf(v any) (string, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(data)
	return artifact.FormatDigest(sum[:]), nil
}

// locked is the version that the lock has for a declared dependency, "" if it has none.
func (r requirements) locked(declared *chart.Dependency) string {
	for _, locked := range r.lock.Dependencies {
		if locked != nil && locked.Name == declared.Name && strings.TrimSuffix(locked.Repository, "/") == strings.TrimSuffix(declared.Repository, "/") &&
			satisfies(locked.Version, declared.Version) {
			return locked.Version
		}
	}
	return ""
}

// decode reads a small YAML file as Helm does. It is false if there is none, or if it
// can't be read.
func decode(file *render.File, into any) bool {
	return file != nil && len(file.Data) <= MaxChartFile && grown(file.Data) <= MaxChartFile &&
		yaml.Unmarshal(file.Data, into) == nil
}

// grown is how large YAML gets when its aliases are written out, or somewhat more than
// is accepted.
func grown(data []byte) int {
	var document yamlv3.Node
	if yamlv3.Unmarshal(data, &document) != nil {
		return MaxChartFile + 1
	}
	return measure(&document, map[*yamlv3.Node]int{})
}

// measure adds up a node's texts. Anchors come before their aliases; one that has
// itself in it is more than is accepted.
func measure(node *yamlv3.Node, anchors map[*yamlv3.Node]int) int {
	if node.Kind == yamlv3.AliasNode {
		if size, known := anchors[node.Alias]; known {
			return size
		}
		return MaxChartFile + 1
	}
	size := len(node.Value) + 1
	for _, child := range node.Content {
		if size += measure(child, anchors); size > MaxChartFile {
			return MaxChartFile + 1
		}
	}
	if node.Anchor != "" {
		anchors[node] = size
	}
	return size
}
