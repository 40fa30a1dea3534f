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

// MaxValuesBytes bounds the text of values, in bytes: as much as a Secret or a ConfigMap holds.
const MaxValuesBytes = 1 << 20
