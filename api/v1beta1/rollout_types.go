// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Rollout says in which steps a new revision of the stack reaches its clusters.
type Rollout struct {
	// waves follow each other. A cluster is in the first wave that takes it; clusters that no wave takes are in a
	// last one, named "rest". Without waves, a wave named "first" has one cluster. Once a cluster has started, waves
	// stay as they are until the next change of the stack. At most 16.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Waves []RolloutWave `json:"waves,omitempty"`

	// maxConcurrent is how many clusters of a wave may be on their way at once: a number, or a percentage of the
	// wave's clusters, rounded up. Defaults to 10%. From 1, or 1%, to 100%.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=4
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 1 : self.matches('^(100|[1-9][0-9]?)%$')",message="maxConcurrent is a number, from 1, or a percentage, from 1% to 100%"
	MaxConcurrent *intstr.IntOrString `json:"maxConcurrent,omitempty"`

	// maxFailed is how many clusters of a wave may fail: a number, or a percentage of the wave's clusters, rounded
	// down. If more fail, no cluster starts, and onFailure says what follows. A cluster that wasn't ready before doesn't
	// count. A rollout that is halted continues once this is raised to the number that failed. Defaults to 0. From 0,
	// or 0%, to 100%.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=4
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 : self.matches('^(100|[1-9]?[0-9])%$')",message="maxFailed is a number, from 0, or a percentage, from 0% to 100%"
	MaxFailed *intstr.IntOrString `json:"maxFailed,omitempty"`

	// soak is how long the clusters of a wave have to stay ready before the next wave begins; those of the last wave,
	// before the revision is completed. Defaults to 0s. From 0s to 720h.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^(0|([0-9]+([.][0-9]+)?(ns|us|ms|s|m|h))+)$') && duration(self) >= duration('0s') && duration(self) <= duration('720h')",message="soak is from 0s to 720h, with units as in 90s, 30m or 24h"
	Soak *metav1.Duration `json:"soak,omitempty"`

	// minReady is how long a cluster has to be ready until it is done. Until then it counts towards maxConcurrent.
	// Defaults to 5m. From 0s to 24h.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^(0|([0-9]+([.][0-9]+)?(ns|us|ms|s|m|h))+)$') && duration(self) >= duration('0s') && duration(self) <= duration('24h')",message="minReady is from 0s to 24h, with units as in 90s, 30m or 24h"
	MinReady *metav1.Duration `json:"minReady,omitempty"`

	// readyWithin is how long a cluster may take to be ready at the new revision. After that it counts as failed.
	// Defaults to 1h. From 1m to 168h.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^(0|([0-9]+([.][0-9]+)?(ns|us|ms|s|m|h))+)$') && duration(self) >= duration('1m') && duration(self) <= duration('168h')",message="readyWithin is from 1m to 168h, with units as in 90s, 30m or 24h"
	ReadyWithin *metav1.Duration `json:"readyWithin,omitempty"`

	// onFailure says what follows once more clusters than maxFailed failed. Halt (the default) starts no other
	// cluster. RollBack also brings each cluster that has the revision back to the one that it had before.
	// +optional
	OnFailure RolloutFailurePolicy `json:"onFailure,omitempty"`

	// windows are the times in which clusters start; clusters that have started go on. Without windows they start at
	// any time. At most 8.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	Windows []RolloutWindow `json:"windows,omitempty"`
}

// RolloutWave is a step of a rollout.
//
// +kubebuilder:validation:XValidation:rule="has(self.clusterSelector) != has(self.size)",message="set either clusterSelector or size"
type RolloutWave struct {
	// name is a DNS label, and not "rest".
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self != 'rest' && self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="name is a DNS label other than rest, which is the wave after the last one"
	Name string `json:"name"`

	// clusterSelector selects clusters by their labels, from those that no earlier wave has.
	// +optional
	ClusterSelector *metav1.LabelSelector `json:"clusterSelector,omitempty"`

	// size is how many clusters the wave has, from those that no earlier wave has: a number, or a percentage, rounded
	// up. Their names alone decide which clusters these are. One that can't be worked on, or isn't well, is taken with
	// them and not counted. A percentage is of the clusters at the time when the first one starts. From 1, or 1%, to 100%.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=4
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 1 : self.matches('^(100|[1-9][0-9]?)%$')",message="size is a number, from 1, or a percentage, from 1% to 100%"
	Size *intstr.IntOrString `json:"size,omitempty"`

	// maxConcurrent is that of this wave. Defaults to spec.rollout.maxConcurrent. From 1, or 1%, to 100%.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=4
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 1 : self.matches('^(100|[1-9][0-9]?)%$')",message="maxConcurrent is a number, from 1, or a percentage, from 1% to 100%"
	MaxConcurrent *intstr.IntOrString `json:"maxConcurrent,omitempty"`

	// soak is that of this wave. Defaults to spec.rollout.soak. From 0s to 720h.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^(0|([0-9]+([.][0-9]+)?(ns|us|ms|s|m|h))+)$') && duration(self) >= duration('0s') && duration(self) <= duration('720h')",message="soak is from 0s to 720h, with units as in 90s, 30m or 24h"
	Soak *metav1.Duration `json:"soak,omitempty"`

	// approval says whether somebody has to approve the wave before it begins: by the annotation
	// addons.cluster.x-k8s.io/rollout-approved of the ControllerRevision. Defaults to None.
	// +optional
	Approval RolloutApproval `json:"approval,omitempty"`

	// optional lets the rollout pass a wave whose clusterSelector selects no cluster. Without it, the rollout waits for
	// one. Defaults to false.
	// +optional
	Optional bool `json:"optional,omitempty"`
}

// RolloutWindow is a time that comes again and again.
type RolloutWindow struct {
	// start is when the window opens, in the five fields of cron, as in "0 22 * * 1-4".
	// +required
	// +kubebuilder:validation:MinLength=9
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[-0-9A-Za-z*/,?]+( +[-0-9A-Za-z*/,?]+){4}$')",message="start has the five fields of cron: minute, hour, day of the month, month, day of the week"
	Start string `json:"start"`

	// duration is how long the window is open. From 10m to 168h.
	// +required
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^(0|([0-9]+([.][0-9]+)?(ns|us|ms|s|m|h))+)$') && duration(self) >= duration('10m') && duration(self) <= duration('168h')",message="duration is from 10m to 168h, with units as in 90s, 30m or 24h"
	Duration metav1.Duration `json:"duration,omitempty,omitzero"`

	// timeZone is where the clock of start is, as a name of the IANA database like "Europe/Berlin". Defaults to UTC.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	TimeZone string `json:"timeZone,omitempty"`
}

// RolloutFailurePolicy says what follows when too many clusters failed.
// +kubebuilder:validation:Enum=Halt;RollBack
type RolloutFailurePolicy string

const (
	// RolloutHalt starts no other cluster.
	RolloutHalt RolloutFailurePolicy = "Halt"
	// RolloutRollBack brings each cluster that has the revision back to the one that it had before.
	RolloutRollBack RolloutFailurePolicy = "RollBack"
)

// RolloutApproval says whether a wave has to be approved.
// +kubebuilder:validation:Enum=None;Required
type RolloutApproval string

const (
	// RolloutApprovalNone lets the wave begin by itself.
	RolloutApprovalNone RolloutApproval = "None"
	// RolloutApprovalRequired keeps the wave waiting until somebody approves it.
	RolloutApprovalRequired RolloutApproval = "Required"
)

// RestWave is the name of the wave after the last one, and FirstWave of the one before it if spec.rollout has no waves.
const (
	RestWave  = "rest"
	FirstWave = "first"
)

// Defaults of spec.rollout.
var (
	DefaultMaxConcurrent = intstr.FromString("10%")
	DefaultMaxFailed     = intstr.FromInt32(0)
)

// Defaults of spec.rollout.readyWithin and spec.rollout.minReady.
const (
	DefaultReadyWithin = time.Hour
	DefaultMinReady    = 5 * time.Minute
)

// RolloutStatus says how far a rollout is.
type RolloutStatus struct {
	// revision is the name of the ControllerRevision that the rollout is of: clusters are brought to it or, if it was
	// rejected, back from it.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Revision string `json:"revision,omitempty"`

	// completed is the name of the ControllerRevision that was completed last: all clusters were seen Ready at it, but
	// for those that nothing could be done on. Left out while there is none.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Completed string `json:"completed,omitempty"`

	// phase says what the rollout does, or what it waits for. The condition RolledOut says what ends it.
	// +optional
	Phase RolloutPhase `json:"phase,omitempty"`

	// since is when the rollout of this revision came to its phase and wave.
	// +optional
	Since metav1.Time `json:"since,omitempty,omitzero"`

	// wave is the name of the wave that the phase is about.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Wave string `json:"wave,omitempty"`

	// wavesDone is how many waves are over, from the first one.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=17
	WavesDone int32 `json:"wavesDone,omitempty"`

	// waves are those of spec.rollout, with "rest" as the last one; "rest" alone for a revision that was completed, or
	// that clusters go back to. At most 17. A stack that several instances manage has none: its conditions in status.instances say how far
	// each instance is.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=17
	Waves []RolloutWaveStatus `json:"waves,omitempty"`
}

// RolloutPhase says what a rollout does, or what it waits for.
// +kubebuilder:validation:Enum=Progressing;Soaking;WaitingForApproval;WaitingForWindow;WaitingForClusters;WaitingForInstances;Paused;Halted;RollingBack;RolledBack;Completed
type RolloutPhase string

// Reasons of the RolledOut condition. Each one is a phase of a rollout.
const (
	// RolloutProgressing: clusters are on their way.
	RolloutProgressing RolloutPhase = "Progressing"
	// RolloutSoaking: all clusters of a wave are ready, and have to stay so for some time.
	RolloutSoaking RolloutPhase = "Soaking"
	// RolloutWaitingForApproval: a wave is to be approved.
	RolloutWaitingForApproval RolloutPhase = "WaitingForApproval"
	// RolloutWaitingForWindow: no window is open.
	RolloutWaitingForWindow RolloutPhase = "WaitingForWindow"
	// RolloutWaitingForClusters: nothing can be done on the clusters of a wave, so it has shown nothing.
	RolloutWaitingForClusters RolloutPhase = "WaitingForClusters"
	// RolloutWaitingForInstances: another provider instance isn't as far with its clusters.
	RolloutWaitingForInstances RolloutPhase = "WaitingForInstances"
	// RolloutPaused: the AddonStack is paused, or its spec.rollout isn't valid.
	RolloutPaused RolloutPhase = "Paused"
	// RolloutHalted: more clusters failed than may. It stays so until a person resumes it, maxFailed is raised, or the
	// stack changes.
	RolloutHalted RolloutPhase = "Halted"
	// RolloutRollingBack: the revision was rejected, and the clusters that have it are on their way back.
	RolloutRollingBack RolloutPhase = "RollingBack"
	// RolloutRolledBack: the revision was rejected, and no cluster has it any more.
	RolloutRolledBack RolloutPhase = "RolledBack"
	// RolloutCompleted: all clusters are Ready at the newest revision, but for those that nothing can be done on.
	RolloutCompleted RolloutPhase = "Completed"
)

// RolloutWaveStatus counts the clusters of a wave.
type RolloutWaveStatus struct {
	// name of the wave.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// total is the number of clusters in the wave.
	// +required
	// +kubebuilder:validation:Minimum=0
	Total int32 `json:"total"`

	// updated is the number of clusters that are to have the revision; of a rejected one, of those that haven't it any more.
	// +required
	// +kubebuilder:validation:Minimum=0
	Updated int32 `json:"updated"`

	// done is the number of clusters that are ready at the revision.
	// +required
	// +kubebuilder:validation:Minimum=0
	Done int32 `json:"done"`

	// failed is the number of clusters that were ready before, and aren't at the revision.
	// +required
	// +kubebuilder:validation:Minimum=0
	Failed int32 `json:"failed"`

	// away is the number of clusters on which nothing can be done now.
	// +required
	// +kubebuilder:validation:Minimum=0
	Away int32 `json:"away"`

	// readySince is when the last one of the clusters that are done became ready.
	// +optional
	ReadySince metav1.Time `json:"readySince,omitempty,omitzero"`
}

// RolloutProgress is how far an instance is with its clusters of a stack that several instances manage.
type RolloutProgress struct {
	// revision is the name of the ControllerRevision that the instance's clusters are brought to.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Revision string `json:"revision"`

	// wavesDone is how many waves of spec.rollout are over, from the first one.
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=17
	WavesDone int32 `json:"wavesDone"`
}
