// SPDX-License-Identifier: Apache-2.0

package job

// Stage is the step of a job that a worker is at; it completes "stopped while ...".
type Stage string

// All stages.
const (
	StageStart     Stage = "reading the request"
	StageOpen      Stage = "reading the archive"
	StageLoad      Stage = "loading the chart"
	StageRead      Stage = "reading the values"
	StageValues    Stage = "coalescing the values"
	StageSchema    Stage = "checking the values against the schema"
	StageTemplates Stage = "executing the templates"
	StageManifests Stage = "reading the manifests"

	StageKustomization Stage = "building the kustomization"
	StagePatches       Stage = "applying the patches"
)

// Reason returns the reason of a crash in this stage.
func (s Stage) Reason() string {
	switch s {
	case StageRead:
		return ReasonValuesInvalid
	case StageTemplates:
		return ReasonTemplateFailed
	case StageManifests:
		return ReasonManifestInvalid
	case StageKustomization:
		return ReasonKustomizationInvalid
	case StagePatches:
		return ReasonPatchFailed
	}
	return ReasonChartInvalid
}
