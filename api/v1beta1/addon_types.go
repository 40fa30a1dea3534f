// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Addon is one add-on: a chart, a kustomization or plain manifests, and where it
// goes.
//
// +kubebuilder:validation:XValidation:rule="!has(self.dependsOn) || !self.dependsOn.exists(d, d == self.name)",message="dependsOn names the add-on itself"
// +kubebuilder:validation:XValidation:rule="[has(self.chart), has(self.kustomization), has(self.manifests)].filter(x, x).size() == 1",message="set exactly one of chart, kustomization and manifests"
// +kubebuilder:validation:XValidation:rule="has(self.chart) || !(has(self.values) || has(self.valuesTemplate) || has(self.valuesFrom))",message="values, valuesTemplate and valuesFrom are for charts"
// +kubebuilder:validation:XValidation:rule="has(self.chart) || !has(self.skipSchemaValidation)",message="skipSchemaValidation is for charts"
type Addon struct {
	// name of the add-on, unique in the stack. It is the name of the Helm release
	// in the workload cluster, too: a DNS label of at most 53 characters.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=53
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`

	// namespace of the workload cluster that the add-on goes to, and that its
	// release record is kept in. Defaults to "default".
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Namespace string `json:"namespace,omitempty"`

	// createNamespace makes the namespace when it is missing. Defaults to true.
	// A namespace made this way stays when the add-on is removed.
	// +optional
	CreateNamespace *bool `json:"createNamespace,omitempty"`

	// templateReleaseName is the name of the release as the chart's templates see it
	// (.Release.Name), for charts whose objects are to keep the names they had under
	// another release. Defaults to name. The release itself is called name.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=53
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	TemplateReleaseName string `json:"templateReleaseName,omitempty"`

	// chart is the Helm chart to install. Exactly one of chart, kustomization and
	// manifests is set.
	// +optional
	Chart ChartSource `json:"chart,omitempty,omitzero"`

	// kustomization to build and install. It is built without remote bases, plugins
	// and files from outside of its artifact.
	// +optional
	Kustomization *KustomizationSource `json:"kustomization,omitempty"`

	// manifests to install as they are: all YAML and JSON files of a directory.
	// +optional
	Manifests *ManifestsSource `json:"manifests,omitempty"`

	// patches change what the chart, the kustomization or the manifests make,
	// before it is installed. At most 64.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Patches []Patch `json:"patches,omitempty"`

	// values for the chart. Of valuesFrom, values and valuesTemplate, each later
	// one wins over the ones before it: maps are merged, lists and all else are
	// replaced, and null takes a default of the chart away.
	// +optional
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	Values *apiextensionsv1.JSON `json:"values,omitempty"`

	// valuesTemplate is a Go template that makes a YAML map of values, in the
	// syntax of the Helm add-on provider: .Cluster, .ControlPlane and
	// .InfraCluster are the Cluster API objects, the functions are sprig's less
	// env, expandenv and getHostByName. At most 256 KiB.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=262144
	ValuesTemplate string `json:"valuesTemplate,omitempty"`

	// valuesTemplateMode says what happens when valuesTemplate asks for a field
	// that isn't there. Strict (the default) fails and names the field. Lenient
	// puts "<no value>" in its place, as templates written for the Helm add-on
	// provider may expect. ClusterStack is for templates of Cluster Stacks: as
	// Lenient, but .Cluster is in the form of cluster.x-k8s.io/v1beta1, and if the
	// template makes a map with a string in its key "values", that is the values.
	// +optional
	ValuesTemplateMode ValuesTemplateMode `json:"valuesTemplateMode,omitempty"`

	// valuesFrom are ConfigMaps and Secrets of this object's namespace that hold
	// values, in the order they are merged. At most 16.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	ValuesFrom []ValuesReference `json:"valuesFrom,omitempty"`

	// skipSchemaValidation installs the chart without a check of the values against
	// its values.schema.json, as for a schema that refers to the web: such
	// references aren't followed. Defaults to false.
	// +optional
	SkipSchemaValidation *bool `json:"skipSchemaValidation,omitempty"`

	// dependsOn names add-ons of this stack that have to be ready before this one
	// is installed or upgraded. They are removed in the opposite order. At most 63.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=63
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=53
	DependsOn []string `json:"dependsOn,omitempty"`

	// readiness are checks on the add-on's objects that have to hold before it is
	// ready, on top of what their kind's status says. At most 16.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Readiness []ReadinessCheck `json:"readiness,omitempty"`

	// preconditions are conditions on objects of the workload cluster that have to
	// hold before the add-on is installed or upgraded. At most 8.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	Preconditions []ObjectsCondition `json:"preconditions,omitempty"`

	// postconditions are conditions on objects of the workload cluster that have to
	// hold after the add-on was applied, before it is ready. At most 8.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	Postconditions []ObjectsCondition `json:"postconditions,omitempty"`

	// progressDeadlineSeconds is how long the add-on may take to become ready
	// after it was applied; then it counts as failed, though it becomes ready
	// later if its objects do. Defaults to 600. From 10 to 86400.
	// +optional
	// +kubebuilder:validation:Minimum=10
	// +kubebuilder:validation:Maximum=86400
	ProgressDeadlineSeconds *int32 `json:"progressDeadlineSeconds,omitempty"`

	// adoptionPolicy says what to do with an object that is in the cluster
	// already, and isn't this add-on's. Fail (the default) leaves it alone and
	// names it. AdoptIfEqual takes it over if no field that the chart sets would
	// change. Adopt takes it over and changes it. What another add-on owns is
	// never taken over. With Fail, a Namespace is shared: the add-on sets fields on
	// it, and never deletes it.
	// +optional
	AdoptionPolicy AdoptionPolicy `json:"adoptionPolicy,omitempty"`
}

// ValuesReference names a key of a ConfigMap or Secret that holds values in YAML.
type ValuesReference struct {
	// kind of the object: ConfigMap or Secret.
	// +required
	// +kubebuilder:validation:Enum=ConfigMap;Secret
	Kind string `json:"kind"`

	// name of the object.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Name string `json:"name"`

	// key that holds the values. Defaults to "values.yaml".
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[-._a-zA-Z0-9]+$`
	Key string `json:"key,omitempty"`

	// optional lets the object or its key be missing. Defaults to false: the
	// add-on waits for it.
	// +optional
	Optional *bool `json:"optional,omitempty"`
}

// ReadinessCheck is a condition on objects of the add-on.
type ReadinessCheck struct {
	// apiVersion of the objects, as in "apps/v1".
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	APIVersion string `json:"apiVersion"`

	// kind of the objects.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`

	// name of the object. Defaults to all objects of the kind that the add-on has.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// expression in CEL that is true once the object is ready. `self` is the
	// object. An error, as of a field that isn't there yet, counts as false.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Expression string `json:"expression"`
}

// ValuesTemplateMode says how a values template treats a missing field.
// +kubebuilder:validation:Enum=Strict;Lenient;ClusterStack
type ValuesTemplateMode string

const (
	// ValuesTemplateModeStrict fails on a missing field.
	ValuesTemplateModeStrict ValuesTemplateMode = "Strict"
	// ValuesTemplateModeLenient writes "<no value>" for a missing field.
	ValuesTemplateModeLenient ValuesTemplateMode = "Lenient"
	// ValuesTemplateModeClusterStack is for templates of Cluster Stacks.
	ValuesTemplateModeClusterStack ValuesTemplateMode = "ClusterStack"
)

// AdoptionPolicy says how to treat an object that exists and isn't ours.
// +kubebuilder:validation:Enum=Fail;Adopt;AdoptIfEqual
type AdoptionPolicy string

const (
	// AdoptionPolicyFail leaves the object alone.
	AdoptionPolicyFail AdoptionPolicy = "Fail"
	// AdoptionPolicyAdopt takes the object over and changes it.
	AdoptionPolicyAdopt AdoptionPolicy = "Adopt"
	// AdoptionPolicyAdoptIfEqual takes the object over if nothing would change.
	AdoptionPolicyAdoptIfEqual AdoptionPolicy = "AdoptIfEqual"
)

// Defaults of optional fields. They are not written into stored objects, so
// that these show what their author meant.
const (
	DefaultAddonNamespace          = "default"
	DefaultArtifactKey             = "chart.tgz"
	DefaultValuesKey               = "values.yaml"
	DefaultProgressDeadlineSeconds = 600
)
