// SPDX-License-Identifier: Apache-2.0

package v1beta1

// FluxSource is the artifact of an object of Flux in the stack's namespace.
//
// +kubebuilder:validation:XValidation:rule="has(self.revision) == has(self.digest)",message="set revision and digest, or none"
type FluxSource struct {
	// kind of the object.
	// +required
	// +kubebuilder:validation:Enum=GitRepository;OCIRepository;Bucket;HelmChart;ExternalArtifact
	Kind string `json:"kind"`

	// name of the object.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// revision of the artifact, as status.following shows it. Defaults to the newest.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Revision string `json:"revision,omitempty"`

	// digest of that artifact.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:Pattern=`^sha256:[0-9a-f]{64}$`
	Digest string `json:"digest,omitempty"`
}
