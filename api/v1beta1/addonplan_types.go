// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"cmp"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AddonPlanSpec says which change is planned. It never changes.
//
// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="the spec of a plan never changes: make another plan"
// +kubebuilder:validation:XValidation:rule="!has(self.revision) || !has(self.template)",message="set at most one of revision and template"
type AddonPlanSpec struct {
	// stackName is the name of the AddonStack, in the namespace of the plan.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	StackName string `json:"stackName"`

	// revision is the name of the ControllerRevision to plan. Without revision and template, it is the one that the stack's
	// rollout is of, or without a rollout the newest one; of a paused stack that was edited, the one that the edit makes.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Revision string `json:"revision,omitempty"`

	// template is the spec of an AddonStack as it might be. It is read as a stack's spec is: unknown fields make the plan fail.
	// Whoever makes such a plan has to have the right to write the stack.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	Template *apiextensionsv1.JSON `json:"template,omitempty"`

	// recordedValues gives each add-on that takes a release of Helm over the values that the release has, in place of those of
	// the stack. Values of fields aren't shown then.
	// +optional
	RecordedValues bool `json:"recordedValues,omitempty"`

	// clusterSelector narrows the clusters of the stack to those with the labels. The label cluster.x-k8s.io/cluster-name is the
	// name of the cluster.
	// +optional
	ClusterSelector *metav1.LabelSelector `json:"clusterSelector,omitempty"`

	// ttlSecondsAfterFinished is how long the plan is kept when it is finished. One that can't begin for so long fails. Defaults to
	// 86400. From 60 to 604800.
	// +optional
	// +kubebuilder:validation:Minimum=60
	// +kubebuilder:validation:Maximum=604800
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`
}

// DefaultPlanTTLSeconds is the default of spec.ttlSecondsAfterFinished.
const DefaultPlanTTLSeconds int32 = 86400

// PlanPhase says how far a plan is.
// +kubebuilder:validation:Enum=Pending;Running;Done;Failed
type PlanPhase string

const (
	// PlanPending waits for other plans of the namespace, or for the stack.
	PlanPending PlanPhase = "Pending"
	// PlanRunning asks clusters.
	PlanRunning PlanPhase = "Running"
	// PlanDone is finished: the status says what the change does.
	PlanDone PlanPhase = "Done"
	// PlanFailed is finished without an answer: the condition Complete says why.
	PlanFailed PlanPhase = "Failed"
)

// AddonPlanStatus is what the change does, as far as that is known.
type AddonPlanStatus struct {
	// phase says how far the plan is.
	// +optional
	Phase PlanPhase `json:"phase,omitempty"`

	// revision is the name of the ControllerRevision, or the one that the template's would have: two plans with the same name are
	// of the same change.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Revision string `json:"revision,omitempty"`

	// finished is when the plan became Done or Failed.
	// +optional
	Finished metav1.Time `json:"finished,omitempty,omitzero"`

	// clusters counts the clusters that the revision selects, and those that it leaves.
	// +optional
	Clusters PlanClusters `json:"clusters,omitempty,omitzero"`

	// clustersDigest is that of the names of the clusters.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	ClustersDigest string `json:"clustersDigest,omitempty"`

	// restarts is the number of workloads whose pods are replaced, on all clusters.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Restarts int32 `json:"restarts,omitempty"`

	// removed is the number of objects that are deleted, on all clusters.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Removed int32 `json:"removed,omitempty"`

	// removals says how many clusters lose add-ons, and whether that is held until somebody confirms it. Left out if none does.
	// +optional
	Removals *PlanRemovals `json:"removals,omitempty"`

	// waves are those of the rollout, with "rest" as the last one. Left out if all clusters get the revision at once.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=17
	Waves []PlanWave `json:"waves,omitempty"`

	// groups are clusters to which the same happens, those of most clusters first.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=50
	Groups []PlanGroup `json:"groups,omitempty"`

	// truncatedGroups is the number of groups that there was no room for. All counts have them.
	// +optional
	// +kubebuilder:validation:Minimum=0
	TruncatedGroups int32 `json:"truncatedGroups,omitempty"`

	// conditions are Complete, and Stale once the plan isn't of the present any more.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// PlanClusters counts clusters. Each one that was asked is in one of same, changed, held, refused, notChecked and unreachable: in
// the worst one that is so of one of its add-ons.
type PlanClusters struct {
	// total is the number of clusters.
	// +required
	// +kubebuilder:validation:Minimum=0
	Total int32 `json:"total"`

	// same is the number of clusters on which nothing happens.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Same int32 `json:"same,omitempty"`

	// changed is the number of clusters on which objects are written or deleted.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Changed int32 `json:"changed,omitempty"`

	// held is the number of clusters on which an add-on waits for something else first, as for an upgrade of Kubernetes.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Held int32 `json:"held,omitempty"`

	// refused is the number of clusters on which an add-on would fail.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Refused int32 `json:"refused,omitempty"`

	// notChecked is the number of clusters on which something can't be known before.
	// +optional
	// +kubebuilder:validation:Minimum=0
	NotChecked int32 `json:"notChecked,omitempty"`

	// unreachable is the number of clusters that didn't answer in time.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Unreachable int32 `json:"unreachable,omitempty"`
}

// PlanRemovals is what the removal guard says.
type PlanRemovals struct {
	// clusters is the number of clusters that lose add-ons.
	// +required
	// +kubebuilder:validation:Minimum=0
	Clusters int32 `json:"clusters"`

	// of is the number of clusters that have add-ons of the stack.
	// +required
	// +kubebuilder:validation:Minimum=0
	Of int32 `json:"of"`

	// allowed is how many may lose some without confirmation.
	// +required
	// +kubebuilder:validation:Minimum=0
	Allowed int32 `json:"allowed"`
}

// PlanWave is a wave of the rollout.
type PlanWave struct {
	// name of the wave.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// total is the number of clusters in it.
	// +required
	// +kubebuilder:validation:Minimum=0
	Total int32 `json:"total"`

	// members are the names of its clusters. At most 500, as there is room.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=500
	Members []string `json:"members,omitempty"`
}

// PlanGroup is a group of clusters to which the same happens, apart from the values of fields that vary.
type PlanGroup struct {
	// clusters is the number of clusters in it.
	// +required
	// +kubebuilder:validation:Minimum=1
	Clusters int32 `json:"clusters"`

	// examples are the names of some of its clusters. The values of fields are those of the first one. At most 5.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=5
	Examples []string `json:"examples,omitempty"`

	// addons are those to which something happens. At most 100.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	Addons []PlanAddon `json:"addons,omitempty"`

	// changes are those of objects. At most 200.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=200
	Changes []PlanChange `json:"changes,omitempty"`

	// truncated is the number of changes that there was no room for.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Truncated int32 `json:"truncated,omitempty"`
}

// PlanState says what becomes of an add-on.
// +kubebuilder:validation:Enum=Same;Changed;Held;NotChecked;Refused;Unreachable
type PlanState string

// PlanAddon is what becomes of an add-on.
type PlanAddon struct {
	// namespace of its release. Left out of an entry about the whole cluster, as one that doesn't answer.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`

	// name of the add-on.
	// +optional
	// +kubebuilder:validation:MaxLength=53
	Name string `json:"name,omitempty"`

	// state says what becomes of it.
	// +required
	State PlanState `json:"state"`

	// removed says that the stack has it no more.
	// +optional
	Removed bool `json:"removed,omitempty"`

	// reason is one of those that status.addons of a ClusterAddon has.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Reason string `json:"reason,omitempty"`

	// message says why it is held, refused or not checked, on the first of the examples.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Message string `json:"message,omitempty"`
}

// PlanAction says what becomes of an object.
// +kubebuilder:validation:Enum=Create;Change;Adopt;Recreate;Keep;Delete;Hook;Refused;NotChecked
type PlanAction string

// PlanChange is what becomes of an object.
type PlanChange struct {
	// addon that the object is of.
	// +required
	// +kubebuilder:validation:MaxLength=53
	Addon string `json:"addon"`

	// apiVersion of the object.
	// +optional
	// +kubebuilder:validation:MaxLength=320
	APIVersion string `json:"apiVersion,omitempty"`

	// kind of the object.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Kind string `json:"kind"`

	// namespace of the object. Left out of those that have none.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`

	// name of the object.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// action says what becomes of it.
	// +required
	Action PlanAction `json:"action"`

	// restarts says that the pods of a workload are replaced.
	// +optional
	Restarts bool `json:"restarts,omitempty"`

	// reason says why the object is kept, refused or not checked.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Reason string `json:"reason,omitempty"`

	// message says so in words.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Message string `json:"message,omitempty"`

	// fields that get another value. At most 20.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	Fields []PlanField `json:"fields,omitempty"`

	// truncatedFields is the number of fields that there was no room for.
	// +optional
	// +kubebuilder:validation:Minimum=0
	TruncatedFields int32 `json:"truncatedFields,omitempty"`
}

// PlanCause says who gives a field another value.
// +kubebuilder:validation:Enum=Manifest;Server;Drift
type PlanCause string

// PlanField is a field that gets another value. Nothing from Secrets is in it.
type PlanField struct {
	// path of the field.
	// +required
	// +kubebuilder:validation:MaxLength=512
	Path string `json:"path"`

	// cause is Manifest for what the change does, Server for a default or a webhook, and Drift for what others edited and is set back.
	// +required
	Cause PlanCause `json:"cause"`

	// old value as JSON, shortened; left out of a field that comes.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Old string `json:"old,omitempty"`

	// new value as JSON, shortened; left out of a field that goes.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	New string `json:"new,omitempty"`

	// varies says that clusters of the group get different values.
	// +optional
	Varies bool `json:"varies,omitempty"`
}

// AddonPlan says what a change of an AddonStack would do to its clusters. People make it and delete it; it changes nothing.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=addonplans,scope=Namespaced,shortName=ap,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="Stack",type=string,JSONPath=`.spec.stackName`
// +kubebuilder:printcolumn:name="Revision",type=string,JSONPath=`.status.revision`,description="Name that the ControllerRevision has, or would have"
// +kubebuilder:printcolumn:name="Clusters",type=integer,JSONPath=`.status.clusters.total`,description="Clusters that the change is about"
// +kubebuilder:printcolumn:name="Changed",type=integer,JSONPath=`.status.clusters.changed`,description="Clusters on which objects are written or deleted"
// +kubebuilder:printcolumn:name="Refused",type=integer,JSONPath=`.status.clusters.refused`,description="Clusters on which an add-on would fail"
// +kubebuilder:printcolumn:name="Restarts",type=integer,JSONPath=`.status.restarts`,description="Workloads whose pods are replaced"
// +kubebuilder:printcolumn:name="Removed",type=integer,JSONPath=`.status.removed`,description="Objects that are deleted"
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Stale",type=string,JSONPath=`.status.conditions[?(@.type=="Stale")].status`,priority=10,description="Whether the plan isn't of the present any more"
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Complete")].message`,priority=10
type AddonPlan struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says which change is planned.
	// +required
	Spec AddonPlanSpec `json:"spec"`

	// status is what the change does.
	// +optional
	Status AddonPlanStatus `json:"status,omitempty,omitzero"`
}

// IsFinished reports whether the plan is Done or Failed.
func (p *AddonPlan) IsFinished() bool {
	return p.Status.Phase == PlanDone || p.Status.Phase == PlanFailed
}

// GetConditions returns the conditions, as Cluster API's condition library asks for.
func (p *AddonPlan) GetConditions() []metav1.Condition { return p.Status.Conditions }

// SetConditions sets the conditions.
func (p *AddonPlan) SetConditions(conditions []metav1.Condition) { p.Status.Conditions = conditions }

// AddonPlanList is a list of AddonPlans.
//
// +kubebuilder:object:root=true
type AddonPlanList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []AddonPlan `json:"items"`
}

// NewestOf returns the plan of a revision of a stack that was done last, nil if there is none. One that is about some of the
// clusters doesn't count. Of those of one second, it is the last one by name.
func (l *AddonPlanList) NewestOf(stack, revision string) (newest *AddonPlan) {
	for i := range l.Items {
		p := &l.Items[i]
		if p.Spec.StackName == stack && p.Status.Revision == revision && p.Status.Phase == PlanDone && p.Spec.ClusterSelector == nil &&
			(newest == nil || cmp.Or(newest.Status.Finished.Compare(p.Status.Finished.Time), cmp.Compare(newest.Name, p.Name)) < 0) {
			newest = p
		}
	}
	return newest
}
