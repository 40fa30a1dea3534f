// SPDX-License-Identifier: Apache-2.0

package v1beta1

// BundleSource is a bundle: an artifact that holds the charts of a stack. Exactly one
// of the places of [ArtifactSource] is set.
//
// +kubebuilder:validation:XValidation:rule="!has(self.clusterStack) || has(self.oci) || has(self.github)",message="clusterStack is for oci and github: all others hold one version"
// +kubebuilder:validation:XValidation:rule="!has(self.oci) || has(self.version) || has(self.clusterStack) || has(self.oci.digest)",message="oci needs version (the tag), clusterStack or oci.digest"
// +kubebuilder:validation:XValidation:rule="!has(self.github) || has(self.version) || has(self.clusterStack)",message="github needs version (the tag) or clusterStack"
// +kubebuilder:validation:XValidation:rule="!has(self.clusterStack) || !has(self.version)",message="set one of version and clusterStack: clusterStack takes the newest version"
// +kubebuilder:validation:XValidation:rule="!has(self.channel) || has(self.clusterStack)",message="channel is for clusterStack"
// +kubebuilder:validation:XValidation:rule="!has(self.clusterStack) || !(has(self.oci) && has(self.oci.digest) || has(self.github) && has(self.github.digest))",message="a digest is that of one version: with it, there is no clusterStack"
// +kubebuilder:validation:XValidation:rule="!has(self.digest) || has(self.path) || has(self.configMap) || has(self.secret)",message="digest is for path, configMap and secret: all others have their own"
type BundleSource struct {
	ArtifactSource `json:",inline"`

	// clusterStack is the Cluster Stack whose releases are followed, in the place of
	// version: provider, name and minor version of Kubernetes, as in "docker-scs-1-31".
	// Its releases are the tags "docker-scs-1-31-v1" and so on. The newest one
	// of the channel is taken; see spec.updates.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=100
	// +kubebuilder:validation:Pattern=`^[a-z0-9]+-[a-z0-9]+-(0|[1-9][0-9]{0,8})-(0|[1-9][0-9]{0,8})$`
	ClusterStack string `json:"clusterStack,omitempty"`

	// channel of clusterStack. stable (the default) has the releases with a plain
	// version, as v2. custom has all that aren't stable. Any other channel has
	// those with its name in the version, as "beta" has v2-beta-7.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[0-9A-Za-z_]+$`
	Channel string `json:"channel,omitempty"`

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
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
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
	// +kubebuilder:validation:Pattern=`^[^/%]+$`
	Name string `json:"name"`

	// namespace of the object. Defaults to none, for an object without a namespace.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Namespace string `json:"namespace,omitempty"`
}
