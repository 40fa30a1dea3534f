// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DeletionPolicy says what becomes of a chart that a cluster is no longer to have.
// +kubebuilder:validation:Enum=Delete;Orphan
type DeletionPolicy string

const (
	// DeletionPolicyDelete uninstalls the chart.
	DeletionPolicyDelete DeletionPolicy = "Delete"
	// DeletionPolicyOrphan leaves the chart in the cluster, as a Helm release
	// that Chandler no longer looks after.
	DeletionPolicyOrphan DeletionPolicy = "Orphan"
)

// ValuesTemplateMode says how a values template treats a missing field.
// +kubebuilder:validation:Enum=Strict;Lenient
type ValuesTemplateMode string

const (
	// ValuesTemplateModeStrict fails on a missing field.
	ValuesTemplateModeStrict ValuesTemplateMode = "Strict"
	// ValuesTemplateModeLenient writes "<no value>" for a missing field.
	ValuesTemplateModeLenient ValuesTemplateMode = "Lenient"
)

// AddonStackSpec says which chart which clusters are to have. If the stack has
// further add-ons, which v1beta1 shows, this is the first of them.
//
// +kubebuilder:validation:XValidation:rule="has(self.clusterSelector) || (has(self.classNames) && size(self.classNames) > 0)",message="set spec.clusterSelector or spec.classNames; an empty clusterSelector ({}) selects every Cluster of the namespace"
// +kubebuilder:validation:XValidation:rule="has(self.repoURL) != has(self.chartFrom)",message="set exactly one of repoURL and chartFrom"
// +kubebuilder:validation:XValidation:rule="has(self.repoURL) == has(self.chartName)",message="repoURL and chartName go together"
// +kubebuilder:validation:XValidation:rule="!has(self.chartFrom) || !(has(self.version) || has(self.digest) || has(self.credentials) || has(self.plainHTTP))",message="version, digest, credentials and plainHTTP are for repoURL: chartFrom holds one version"
// +kubebuilder:validation:XValidation:rule="!has(self.repoURL) || has(self.version) || has(self.digest) && self.repoURL.startsWith('oci://')",message="repoURL needs version: Chandler installs no version that nobody named"
// +kubebuilder:validation:XValidation:rule="!has(self.version) || !has(self.digest) || self.version.matches('^v?[0-9]+[.][0-9]+[.][0-9]+([-+][0-9A-Za-z.+-]+)?$')",message="a digest is that of one version: with it, version is an exact one"
// +kubebuilder:validation:XValidation:rule="!has(self.repoURL) || !has(self.chartName) || !self.repoURL.startsWith('oci://') || size(self.repoURL + '/' + self.chartName) <= 512 && (self.repoURL + '/' + self.chartName).matches('^oci://([0-9A-Za-z.-]+|[[][0-9A-Fa-f:.]+[]])(:[0-9]+)?(/[a-z0-9]+(([.]|_|__|-+)[a-z0-9]+)*)+$')",message="repoURL and chartName make oci://registry/path/chart in lower case, of at most 512 characters, without tag and digest"
// +kubebuilder:validation:XValidation:rule="!has(self.repoURL) || !self.repoURL.startsWith('http://') || has(self.plainHTTP) && self.plainHTTP",message="a repoURL that starts with http:// needs plainHTTP: true"
type AddonStackSpec struct {
	// clusterSelector selects Clusters of this object's namespace by their labels.
	// An empty selector ({}) selects all of them. When classNames is set too, a
	// Cluster has to match both.
	// +optional
	ClusterSelector *metav1.LabelSelector `json:"clusterSelector,omitempty"`

	// classNames selects Clusters by the name of their ClusterClass
	// (Cluster.spec.topology.classRef.name); any one of the names will do.
	// At most 64.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	ClassNames []string `json:"classNames,omitempty"`

	ChartLocation `json:",inline"`

	// releaseName is the name of the Helm release in the workload cluster, and of
	// the add-on in v1beta1: a DNS label of at most 53 characters. Another name is
	// another release: the old one is uninstalled, unless the stack has further
	// add-ons; then it stays as one of them.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=53
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	ReleaseName string `json:"releaseName,omitempty"`

	// namespace of the workload cluster that the chart goes to, and that its
	// release record is kept in. Defaults to "default".
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	ReleaseNamespace string `json:"namespace,omitempty"`

	// valuesTemplate is a Go template that makes a YAML map of values, in the
	// syntax of the Helm add-on provider. In it, .Cluster, .ControlPlane and
	// .InfraCluster are the Cluster API objects. Its functions are those of
	// sprig without env, expandenv and getHostByName. At most 256 KiB.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=262144
	ValuesTemplate string `json:"valuesTemplate,omitempty"`

	// valuesTemplateMode says what happens when valuesTemplate asks for a field
	// that isn't there. Lenient (the default, and what is meant where nothing is
	// shown) puts "<no value>" in its place, as the Helm add-on provider does.
	// Strict fails and names the field.
	// +optional
	ValuesTemplateMode ValuesTemplateMode `json:"valuesTemplateMode,omitempty"`

	// options of the installation.
	// +optional
	Options HelmOptions `json:"options,omitempty,omitzero"`

	// deletionPolicy says what becomes of the chart on a Cluster that is no longer
	// selected, and on all of them when this object is deleted. Delete (the
	// default) uninstalls it, Orphan leaves it as it is. When the Cluster itself is
	// deleted, nothing is uninstalled.
	// +optional
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`
}

// AddonStackStatus is what Chandler saw of an AddonStack.
// +kubebuilder:validation:MinProperties=1
type AddonStackStatus struct {
	// conditions: Ready sums up Valid and ClustersReady. They are those of v1beta1.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration is the metadata.generation this status is about; -1 until the first look.
	// +optional
	// +kubebuilder:validation:Minimum=-1
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// latestRevision is the name of the ControllerRevision that holds the newest
	// valid spec.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	LatestRevision string `json:"latestRevision,omitempty"`

	// clusters counts the Clusters this stack selects.
	// +optional
	Clusters *ClusterCounts `json:"clusters,omitempty"`
}

// ClusterCounts counts the Clusters that an AddonStack selects. A Cluster is
// counted in matching, and in at most one of the others.
type ClusterCounts struct {
	// matching is the number of Clusters selected.
	// +required
	// +kubebuilder:validation:Minimum=0
	Matching int32 `json:"matching"`

	// ready is the number of Clusters on which all of this stack's add-ons are
	// ready, at the newest revision.
	// +required
	// +kubebuilder:validation:Minimum=0
	Ready int32 `json:"ready"`

	// failed is the number of Clusters on which one of this stack's add-ons failed.
	// +required
	// +kubebuilder:validation:Minimum=0
	Failed int32 `json:"failed"`

	// waiting is the number of Clusters on which nothing can be done now: the
	// control plane isn't up, the Cluster is paused, being deleted, or can't be reached.
	// +required
	// +kubebuilder:validation:Minimum=0
	Waiting int32 `json:"waiting"`
}

// AddonStack says which chart, at which version, which clusters of its namespace
// are to have.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=addonstacks,scope=Namespaced,shortName=as,categories=cluster-api
// +kubebuilder:printcolumn:name="Chart",type=string,JSONPath=`.spec.chartName`,description="Name of the chart"
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.spec.version`,description="Version of the chart"
// +kubebuilder:printcolumn:name="Clusters",type=integer,JSONPath=`.status.clusters.matching`,description="Clusters selected"
// +kubebuilder:printcolumn:name="Ready",type=integer,JSONPath=`.status.clusters.ready`,description="Clusters on which all add-ons are ready, at the newest revision"
// +kubebuilder:printcolumn:name="Failed",type=integer,JSONPath=`.status.clusters.failed`,description="Clusters on which an add-on failed"
// +kubebuilder:printcolumn:name="OK",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="The Ready condition"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,description="What is wrong, if anything is"
// +kubebuilder:printcolumn:name="Revision",type=string,JSONPath=`.status.latestRevision`,priority=10
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 52",message="metadata.name may have at most 52 characters: it is a label value, and the stem of the names of revisions"
type AddonStack struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says which chart which clusters are to have.
	// +required
	Spec AddonStackSpec `json:"spec"`

	// status is what Chandler saw.
	// +optional
	Status AddonStackStatus `json:"status,omitempty,omitzero"`
}

// AddonStackList is a list of AddonStacks.
//
// +kubebuilder:object:root=true
type AddonStackList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []AddonStack `json:"items"`
}
