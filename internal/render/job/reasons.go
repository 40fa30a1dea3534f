// SPDX-License-Identifier: Apache-2.0

package job

// Reasons of a failed job. They are part of the API: users see them in conditions.
const (
	// ReasonChartInvalid: the chart cannot be loaded, or cannot be installed on this cluster.
	ReasonChartInvalid = "ChartInvalid"
	// ReasonValuesInvalid: the values are no YAML map, have a key twice, or are too large.
	ReasonValuesInvalid = "ValuesInvalid"
	// ReasonSchemaViolation: the values break the chart's values.schema.json.
	ReasonSchemaViolation = "SchemaViolation"
	// ReasonTemplateFailed: a template of the chart does not parse, or failed while it ran.
	ReasonTemplateFailed = "TemplateFailed"
	// ReasonValuesTemplateFailed: a template of values, or of a name in valuesFrom, does not parse, or failed while it ran.
	ReasonValuesTemplateFailed = "ValuesTemplateFailed"
	// ReasonTemplateNotRepeatable: the values template makes something else each time.
	ReasonTemplateNotRepeatable = "TemplateNotRepeatable"
	// ReasonRenderTimeout: the rendering took longer than Options.Timeout.
	ReasonRenderTimeout = "RenderTimeout"
	// ReasonOutputTooLarge: more output than Limits allow.
	ReasonOutputTooLarge = "OutputTooLarge"
	// ReasonOutOfMemory: the rendering needed more than Options.MemoryBytes.
	ReasonOutOfMemory = "OutOfMemory"
	// ReasonKustomizationInvalid: the kustomization cannot be built, or names something outside of its artifact.
	ReasonKustomizationInvalid = "KustomizationInvalid"
	// ReasonGeneratedValuesLost: values that a Helm release's chart generated can't be taken over.
	ReasonGeneratedValuesLost = "GeneratedValuesLost"
	// ReasonPatchFailed: a patch fits none of the objects, or cannot be applied to one.
	ReasonPatchFailed = "PatchFailed"
	// ReasonWaitingForRenderer: no worker is free, or others of the same cluster took their time.
	ReasonWaitingForRenderer = "WaitingForRenderer"
	// ReasonManifestInvalid: the text of templates or manifests isn't Kubernetes objects.
	ReasonManifestInvalid = "ManifestInvalid"
)
