// SPDX-License-Identifier: Apache-2.0

package dependency

import (
	"crypto/sha256"
	"encoding/json"
	"strings"

	chart "helm.sh/helm/v4/pkg/chart/v2"
	"sigs.k8s.io/yaml"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/yamllimit"
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
	synced   bool        // the lock was made for what is declared
	legacy   bool        // apiVersion v1
}

// readRequirements reads those of the chart whose files have names that start with
// within. What can't be read as Helm does has none: to say what is wrong with a chart
// is the renderer's business.
func readRequirements(files []artifact.File, within string, left *effort) requirements {
	var metadata chart.Metadata
	if !left.decode(artifact.Find(files, within+artifact.ChartFile), &metadata) {
		return requirements{}
	}
	if metadata.APIVersion == "" {
		metadata.APIVersion = chart.APIVersionV1
	}
	r := requirements{file: artifact.ChartFile, lockFile: lockFile, legacy: metadata.APIVersion == chart.APIVersionV1}
	if left.decode(artifact.Find(files, within+RequirementsFile), &metadata) {
		r.file = RequirementsFile // whatever the apiVersion, as in Helm's loader
	}
	if metadata.Validate() != nil || len(metadata.Dependencies) == 0 {
		return requirements{}
	}
	for _, name := range []string{lockFile, requirementsLock} { // the latter counts, as in Helm's loader
		var lock chart.Lock
		if left.decode(artifact.Find(files, within+name), &lock) {
			r.lock, r.lockFile = &lock, name
		}
	}
	if r.lock == nil && r.legacy {
		r.lockFile = requirementsLock
	}
	r.chart = metadata.Name + " " + metadata.Version
	r.declared = metadata.Dependencies
	r.synced = r.inSync()
	return r
}

// fit checks that what is declared is within what a chart may have.
func (r requirements) fit(within string) error {
	if len(r.declared) > Max {
		return TooMany()
	}
	for i, declared := range r.declared {
		if len(declared.Version) > maxRange {
			return r.want(i, within).Refused(failure.New(failure.ArtifactInvalid, "its version is longer than %d bytes; shorten it", maxRange))
		}
	}
	return nil
}

// inSync tells whether the lock was made for what is declared, as Helm tells it. A lock
// with more than a chart may have was made for something else.
func (r requirements) inSync() bool {
	if r.lock == nil || len(r.lock.Dependencies) > Max {
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
	allowed := rangeOf(declared.Version)
	for _, locked := range r.lock.Dependencies {
		if locked != nil && locked.Name == declared.Name && strings.TrimSuffix(locked.Repository, "/") == strings.TrimSuffix(declared.Repository, "/") &&
			allowed.has(versionOf(locked.Version)) {
			return locked.Version
		}
	}
	return ""
}

// chartFileLimits are of Chart.yaml, requirements.yaml and their locks.
var chartFileLimits = yamllimit.Limits{Bytes: MaxChartFile, Values: MaxChartFile / 2, Depth: 200, Written: 2 * MaxChartFile}

// decode reads a small YAML file as Helm does. It is false if there is none, or if it
// can't be read.
func decode(file *artifact.File, into any) bool {
	return file != nil && chartFileLimits.Check(file.Data) == nil && yaml.Unmarshal(file.Data, into) == nil
}
