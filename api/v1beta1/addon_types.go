// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Addon is one add-on: a chart, a kustomization or plain manifests, and where it
// is installed.
//
// +kubebuilder:validation:XValidation:rule=`(has(self.dependsOn) && self.dependsOn.exists(d, d == self.name) ? 'dependsOn names the add-on itself' : has(self.adoptRelease) && !(has(self.adoptionPolicy) && self.adoptionPolicy == 'Adopt') ? 'adoptRelease needs adoptionPolicy Adopt' : has(self.chart) ? (has(self.kustomization) || has(self.manifests) ? 'set exactly one of chart, kustomization and manifests' : "") : has(self.kustomization) == has(self.manifests) ? 'set exactly one of chart, kustomization and manifests' : has(self.values) || has(self.valuesTemplate) || has(self.valuesFrom) ? 'values, valuesTemplate and valuesFrom are for charts' : has(self.skipSchemaValidation) ? 'skipSchemaValidation is for charts' : "") == ""`,messageExpression=`has(self.dependsOn) && self.dependsOn.exists(d, d == self.name) ? 'dependsOn names the add-on itself' : has(self.adoptRelease) && !(has(self.adoptionPolicy) && self.adoptionPolicy == 'Adopt') ? 'adoptRelease needs adoptionPolicy Adopt' : has(self.chart) ? (has(self.kustomization) || has(self.manifests) ? 'set exactly one of chart, kustomization and manifests' : "") : has(self.kustomization) == has(self.manifests) ? 'set exactly one of chart, kustomization and manifests' : has(self.values) || has(self.valuesTemplate) || has(self.valuesFrom) ? 'values, valuesTemplate and valuesFrom are for charts' : has(self.skipSchemaValidation) ? 'skipSchemaValidation is for charts' : ""`
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

	// values for the chart. values win over valuesFrom, and valuesTemplate
	// wins over both. Maps are merged, lists and all else are
	// replaced, and null takes a default of the chart away.
	// +optional
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	Values *apiextensionsv1.JSON `json:"values,omitempty"`

	// valuesTemplate is a Go template that makes a YAML map of values, in the
	// syntax of the Helm add-on provider. In it, .Cluster, .ControlPlane and
	// .InfraCluster are the Cluster API objects. Its functions are those of
	// sprig without env, expandenv and getHostByName. At most 256 KiB.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=262144
	ValuesTemplate string `json:"valuesTemplate,omitempty"`

	// valuesTemplateMode says what happens when valuesTemplate asks for a field
	// that isn't there. Strict (the default) fails and names the field. Lenient
	// puts "no value" in its place, in angle brackets, as templates written for the Helm add-on
	// provider may expect. ClusterStack is for templates of Cluster Stacks. It is
	// as Lenient, but .Cluster is in the form of cluster.x-k8s.io/v1beta1. And if
	// the template makes a map with a string in its key "values", that string is
	// the values.
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

	// dependsOn names add-ons that have to be ready before this one is installed or
	// upgraded: "name" for one of this stack, "stack/name" for one of another stack of
	// the namespace. They are removed in the opposite order. At most 63.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=63
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=106
	DependsOn []string `json:"dependsOn,omitempty"`

	// lifecycle says how the add-on goes along with its cluster's Kubernetes.
	// +optional
	Lifecycle *AddonLifecycle `json:"lifecycle,omitempty"`

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
	// change. Adopt takes it over and changes it. An object of another add-on is
	// never taken over. With Fail, a Namespace is shared: the add-on sets fields on
	// it, and never deletes it.
	// +optional
	AdoptionPolicy AdoptionPolicy `json:"adoptionPolicy,omitempty"`

	// adoptRelease is the release of Helm that the add-on takes over when it is first
	// installed, if that one has another name, or its record is in another namespace.
	// Its objects that the add-on lacks are deleted, and so is its record once the add-on is
	// ready. Where there is none, the add-on is installed as usual. Needs adoptionPolicy
	// Adopt.
	// +optional
	AdoptRelease *ReleaseReference `json:"adoptRelease,omitempty"`

	// onFailure says what happens when an upgrade fails. Retry (the default) tries it again,
	// with growing pauses. RollBack installs what was deployed before, once, and leaves it
	// so until the add-on, its inputs or the cluster ask for something else.
	// +optional
	OnFailure FailurePolicy `json:"onFailure,omitempty"`

	// immutableFieldPolicy says what happens when an upgrade changes a field of an object
	// that can't be changed. Fail (the default) leaves the object and names it. Recreate
	// deletes the object and makes it again, one at a time. Never deleted for it are
	// PersistentVolumeClaims, PersistentVolumes, Namespaces, CustomResourceDefinitions and
	// custom resources. A StatefulSet's pods stay.
	// +optional
	ImmutableFieldPolicy ImmutableFieldPolicy `json:"immutableFieldPolicy,omitempty"`

	// generatedValuesPolicy says what becomes of generated values that can't be read from a Helm release which is
	// taken over, such as a hash, or a CA without its key. Keep (the default) touches nothing, and names them. Renew
	// has the chart make these values again. All others are kept.
	// +optional
	GeneratedValuesPolicy GeneratedValuesPolicy `json:"generatedValuesPolicy,omitempty"`

	// prunePolicy says when an upgrade deletes the objects that the new revision doesn't have. BeforeReady is for
	// a workload that can't start before the one that it replaces is gone, as both want the same port of a node,
	// or the same volume. Defaults to AfterReady.
	// +optional
	PrunePolicy PrunePolicy `json:"prunePolicy,omitempty"`

	// crdPolicy says what happens with the CustomResourceDefinitions of a chart's crds/
	// directory. CreateReplace (the default) applies them with each revision, Create makes
	// those that are missing, Skip leaves all to others. They are never deleted.
	// +optional
	CRDPolicy CRDPolicy `json:"crdPolicy,omitempty"`

	// dataPolicy says what becomes of the add-on's PersistentVolumeClaims and Namespaces
	// when it has them no longer, or is removed itself. Keep (the default) leaves them in the
	// cluster. Delete deletes them with the rest; a Namespace only if nothing of others is
	// in it.
	// +optional
	DataPolicy DataPolicy `json:"dataPolicy,omitempty"`

	// historyLimit is how many revisions of the release are kept in the cluster, with the
	// one that is deployed. Defaults to 5. From 1 to 50.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=50
	HistoryLimit *int32 `json:"historyLimit,omitempty"`

	// drift says what happens when others change or delete the add-on's objects. A
	// change of it alone upgrades nothing.
	// +optional
	Drift *Drift `json:"drift,omitempty"`
}

// ReleaseReference names a release of Helm in the workload cluster.
// +kubebuilder:validation:MinProperties=1
type ReleaseReference struct {
	// name of the release, as `helm list` shows it. Defaults to the add-on's name.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=53
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	Name string `json:"name,omitempty"`

	// storageNamespace is where the release's record is, as Flux's field of this name
	// says. Defaults to the add-on's namespace.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	StorageNamespace string `json:"storageNamespace,omitempty"`
}

// ValuesReference names a key of a ConfigMap or Secret that holds values in YAML.
type ValuesReference struct {
	// kind of the object: ConfigMap or Secret.
	// +required
	// +kubebuilder:validation:Enum=ConfigMap;Secret
	Kind string `json:"kind"`

	// name of the object. With "{{" in it, it is a Go template in the syntax of
	// valuesTemplate that makes the name for each cluster, as in
	// "{{ .Cluster.metadata.name }}-cloud-config". A field that isn't there is an
	// error in each valuesTemplateMode. The template and the name have at most 253
	// characters each.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.contains('{{') || self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="name is the name of an object, in lower case, or a template with {{ in it"
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

	// staged lets a change of the values reach clusters in the steps of
	// spec.rollout, if the stack has it. With false, it waits for no step, and
	// only maxConcurrent and maxFailed hold: for credentials that rotate. Values of an object whose name is a template
	// are never staged. Defaults to true.
	// +optional
	Staged *bool `json:"staged,omitempty"`
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
	// object. An error, such as a field that isn't there yet, counts as false.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Expression string `json:"expression"`
}

// Defaults of optional fields. They are not written into stored objects, so
// that these show what their author meant.
const (
	DefaultAddonNamespace          = "default"
	DefaultArtifactKey             = "chart.tgz"
	DefaultValuesKey               = "values.yaml"
	DefaultProgressDeadlineSeconds = 600
	DefaultHistoryLimit            = 5
	DefaultDegradedAfter           = time.Minute
)
