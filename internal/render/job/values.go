// SPDX-License-Identifier: Apache-2.0

package job

// Values is the reading of values.
type Values struct {
	Text []byte
	// Lenient takes the last of the values of a key that appears twice, as Helm does: published
	// releases, and templates for the Helm add-on provider, may count on it.
	Lenient bool
}

// Template is the rendering of a values template.
type Template struct {
	// Name appears in messages, e.g. `spec.addons[0].valuesTemplate`.
	Name string
	Text string
	// Data has the roots Cluster, ControlPlane and InfraCluster, as objects are decoded.
	Data map[string]any
	// Strict makes a field without a value an error in place of the text "<no value>".
	Strict bool
}

// Names is the making of names of objects by templates, which are strict.
type Names struct {
	// Field has the list of the names in it, and appears in messages, e.g. `addons[web].valuesFrom`.
	Field string
	// Templates make a name each. Text without an action is the name itself.
	Templates []string
	// Data is that of a [Template].
	Data map[string]any
}

// MaxNameBytes bounds the text that the template of a name makes, in bytes: more than a name has, so that a
// message can show what was made.
const MaxNameBytes = 1 << 10

// MaxValuesBytes bounds the text of values, in bytes: as much as a Secret or a ConfigMap holds.
const MaxValuesBytes = 1 << 20
