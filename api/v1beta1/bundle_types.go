// SPDX-License-Identifier: Apache-2.0

package v1beta1

// BundleSource is a bundle: an artifact that holds the charts of a stack. Exactly
// one of path, configMap, secret, oci and http is set.
//
// +kubebuilder:validation:XValidation:rule="[has(self.path), has(self.configMap), has(self.secret), has(self.oci), has(self.http)].filter(x, x).size() == 1",message="set exactly one of path, configMap, secret, oci and http"
// +kubebuilder:validation:XValidation:rule="!has(self.version) || has(self.oci)",message="version is for oci: all others hold one version"
// +kubebuilder:validation:XValidation:rule="!has(self.oci) || has(self.version) || has(self.oci.digest)",message="oci needs version (the tag) or oci.digest"
// +kubebuilder:validation:XValidation:rule="!has(self.digest) || has(self.path) || has(self.configMap) || has(self.secret)",message="digest is for path, configMap and secret: oci and http have their own"
// +kubebuilder:validation:XValidation:rule="!has(self.verify) || has(self.oci) && has(self.verify.cosign)",message="verify is for oci, and only with cosign"
type BundleSource struct {
	ArtifactSource `json:",inline"`

	// digest of the bundle's content, as sha256:<hex>: of an archive it is what
	// sha256sum prints, of a Cluster Stack release in a registry that of its
	// manifest. The bundle has to be that one. Revisions have it always.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:Pattern=`^sha256:[0-9a-f]{64}$`
	Digest string `json:"digest,omitempty"`

	// adoptionPolicy of the add-ons that are made of a Cluster Stack release; see
	// addons[].adoptionPolicy. Adopt takes over what the Cluster Stack Operator
	// installed. Defaults to Fail.
	// +optional
	AdoptionPolicy AdoptionPolicy `json:"adoptionPolicy,omitempty"`
}

// ObjectsCondition is a condition on objects of the workload cluster.
type ObjectsCondition struct {
	// objects that the expression is about. At most 16.
	// +optional
	// +listType=map
	// +listMapKey=key
	// +kubebuilder:validation:MaxItems=16
	Objects []ConditionObject `json:"objects,omitempty"`

	// expression in CEL that is true once the condition holds. Each object is a
	// variable of its key's name. While an object isn't there, or a field of it, the
	// condition doesn't hold.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Expression string `json:"expression"`
}

// ConditionObject is an object of the workload cluster that a condition is about.
type ConditionObject struct {
	// key is the name of the object's variable in the expression.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[_a-zA-Z][_a-zA-Z0-9]*$`
	Key string `json:"key"`

	// apiVersion of the object, as in "apps/v1".
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	APIVersion string `json:"apiVersion"`

	// kind of the object.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`

	// name of the object.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// namespace of the object. Defaults to none, as of objects that are the cluster's.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`
}
