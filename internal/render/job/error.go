// SPDX-License-Identifier: Apache-2.0

package job

import (
	"fmt"
)

// Reasons of an [Error]. They are part of the API: users see them in conditions.
const (
	// ReasonChartInvalid: the chart cannot be loaded, or cannot be installed on this cluster.
	ReasonChartInvalid = "ChartInvalid"
	// ReasonValuesInvalid: the values are no YAML map, have a key twice, or are too large.
	ReasonValuesInvalid = "ValuesInvalid"
	// ReasonSchemaViolation: the values break the chart's values.schema.json.
	ReasonSchemaViolation = "SchemaViolation"
	// ReasonTemplateFailed: a template does not parse, or failed while it ran.
	ReasonTemplateFailed = "TemplateFailed"
	// ReasonTemplateNotRepeatable: the values template makes something else each time.
	ReasonTemplateNotRepeatable = "TemplateNotRepeatable"
	// ReasonRenderTimeout: the rendering took longer than Options.Timeout.
	ReasonRenderTimeout = "RenderTimeout"
	// ReasonOutputTooLarge: more output than Options.OutputBytes, MaxObjects or MaxGenerated allow.
	ReasonOutputTooLarge = "OutputTooLarge"
	// ReasonOutOfMemory: the rendering needed more than Options.MemoryBytes.
	ReasonOutOfMemory = "OutOfMemory"
	// ReasonKustomizationInvalid: the kustomization cannot be built, or names something outside of its artifact.
	ReasonKustomizationInvalid = "KustomizationInvalid"
	// ReasonGeneratedValuesLost: values that a Helm release's chart generated can't be taken over.
	ReasonGeneratedValuesLost = "GeneratedValuesLost"
	// ReasonPatchFailed: a patch fits none of the objects, or cannot be applied to one.
	ReasonPatchFailed = "PatchFailed"
	// ReasonManifestInvalid: the text of templates or manifests isn't Kubernetes objects.
	ReasonManifestInvalid = "ManifestInvalid"
)

// Error is a failure that a user can act on.
type Error struct {
	// Reason is one of the Reason constants.
	Reason string
	Err    error
}

func (e *Error) Error() string { return e.Reason + ": " + e.Err.Error() }

func (e *Error) Unwrap() error { return e.Err }

// Failf returns an Error with a message.
func Failf(reason, format string, args ...any) *Error {
	return &Error{Reason: reason, Err: fmt.Errorf(format, args...)}
}
