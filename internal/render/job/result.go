// SPDX-License-Identifier: Apache-2.0

package job

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Result is a rendered chart, a kustomization that was built, or manifests.
type Result struct {
	Name, Version, AppVersion string
	// Chart is what Helm's release record keeps of the chart (chart): Chart.yaml, and the defaults of the chart and its dependencies, with
	// which `helm upgrade --reuse-values` begins. A kustomization or manifests have no defaults.
	Chart json.RawMessage
	// CRDs are the objects of the crds/ folders, those of subcharts too.
	CRDs []*unstructured.Unstructured
	// Objects are the templates' objects without hooks, Lists flattened, in Helm's install order.
	Objects []*unstructured.Unstructured
	// Manifest is the same as text, byte for byte as Helm records it.
	Manifest string
	// Notes is what the chart's NOTES.txt says, at most [MaxNotes] bytes. It may have secrets: never log.
	Notes string
	// Hooks are Helm's hooks without tests, in the order Helm runs those of one event.
	Hooks []Hook
	// Generated are the values this rendering generated or used again. Secret: never log.
	Generated Generated
	// Made says that some of Generated were made up by this rendering.
	Made bool
	// FactsUsed are the questions this rendering asked about the cluster.
	FactsUsed FactsUsed
}

// MaxNotes bounds the notes of a chart, which nobody needs to install it.
const MaxNotes = 16 << 10

// Hook is an object that Helm creates at an event and does not keep as part of the release.
type Hook struct {
	Name, Kind string
	// Path is the template's, as in Helm's record.
	Path     string
	Manifest string
	// Events are such as pre-install and post-upgrade.
	Events []string
	// Weight orders the hooks of one event, the lowest first.
	Weight int
	// DeletePolicies are such as before-hook-creation, which is the default.
	DeletePolicies []string
	Object         *unstructured.Unstructured
}

// Generated are the values that a rendering made up: random strings, keys, certificates, the
// time. Given to the next rendering, they come out again where they were, so that unchanged objects
// stay byte for byte. Package generated makes and reads the keys. The values are secrets: never log them.
type Generated map[string]string
