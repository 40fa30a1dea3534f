// SPDX-License-Identifier: Apache-2.0

package health_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-chandler/chandler/internal/health"
)

var selected = map[string]string{"app": "web"}

func objectMeta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "shop", Name: name, Generation: 2, Labels: selected}
}

func deployment(change func(*appsv1.Deployment)) *appsv1.Deployment {
	d := &appsv1.Deployment{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}, ObjectMeta: objectMeta("web")}
	d.Spec.Replicas, d.Spec.Selector = ptr.To[int32](4), &metav1.LabelSelector{MatchLabels: selected}
	d.Status = appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 4, UpdatedReplicas: 4, AvailableReplicas: 4}
	change(d)
	return d
}

func pod(name string, change func(*corev1.PodStatus)) corev1.Pod {
	p := corev1.Pod{ObjectMeta: objectMeta(name)}
	change(&p.Status)
	return p
}

func waiting(reason string) func(*corev1.PodStatus) {
	return func(s *corev1.PodStatus) {
		s.ContainerStatuses = []corev1.ContainerStatus{
			{Name: "proxy", Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}},
			{Name: "web", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: "a secret"}}},
		}
	}
}

func available(n int32) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) { d.Status.AvailableReplicas = n }
}

// TestWorkloads has Deployments of four replicas, and others of three, of which two are available.
func TestWorkloads(t *testing.T) {
	set := func(current string, observed int64) client.Object {
		s := &appsv1.StatefulSet{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "StatefulSet"}, ObjectMeta: objectMeta("db")}
		s.Spec.Replicas = ptr.To[int32](3)
		s.Status = appsv1.StatefulSetStatus{ObservedGeneration: observed, AvailableReplicas: 2, CurrentRevision: current, UpdateRevision: "2"}
		return s
	}
	daemons := func(updated int32) client.Object {
		d := &appsv1.DaemonSet{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "DaemonSet"}, ObjectMeta: objectMeta("agent")}
		d.Status = appsv1.DaemonSetStatus{ObservedGeneration: 2, DesiredNumberScheduled: 3, NumberAvailable: 2, UpdatedNumberScheduled: updated}
		return d
	}
	unschedulable := func(s *corev1.PodStatus) {
		s.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "a secret"}}
	}
	crashed := func(restarts int32) func(*corev1.PodStatus) {
		return func(s *corev1.PodStatus) {
			s.ContainerStatuses = []corev1.ContainerStatus{{
				Name: "web", RestartCount: restarts, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
				LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1}},
			}}
		}
	}
	condition := func(kind appsv1.DeploymentConditionType, status corev1.ConditionStatus, n int32) func(*appsv1.Deployment) {
		return func(d *appsv1.Deployment) {
			d.Status.AvailableReplicas = n
			d.Status.Conditions = []appsv1.DeploymentCondition{{Type: kind, Status: status, Reason: "X"}}
		}
	}
	for name, tc := range map[string]struct {
		is     client.Object
		pods   []corev1.Pod
		before int32
		want   string // reason
	}{
		"all are available":            {is: deployment(available(4)), before: 4},
		"no replica is wanted":         {is: deployment(func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To[int32](0); d.Status = appsv1.DeploymentStatus{} })},
		"a container crashes":          {is: deployment(available(3)), pods: []corev1.Pod{pod("a", waiting("CrashLoopBackOff"))}, before: 4, want: health.ReasonCrashLoopBackOff},
		"and runs for a moment":        {is: deployment(available(3)), pods: []corev1.Pod{pod("a", crashed(3))}, before: 4, want: health.ReasonCrashLoopBackOff},
		"it ended once, in an update":  {is: deployment(func(d *appsv1.Deployment) { d.Status.AvailableReplicas, d.Status.UpdatedReplicas = 3, 1 }), pods: []corev1.Pod{pod("a", crashed(1))}, before: 4},
		"an image is gone":             {is: deployment(available(3)), pods: []corev1.Pod{pod("a", waiting("ErrImagePull"))}, before: 4, want: health.ReasonImagePullBackOff},
		"a Secret is gone":             {is: deployment(available(3)), pods: []corev1.Pod{pod("a", waiting("CreateContainerConfigError"))}, before: 4, want: health.ReasonContainerError},
		"a rolling update":             {is: deployment(func(d *appsv1.Deployment) { d.Status.AvailableReplicas, d.Status.UpdatedReplicas = 3, 1 }), pods: []corev1.Pod{pod("a", waiting("ContainerCreating"))}, before: 4},
		"one that isn't seen yet":      {is: deployment(func(d *appsv1.Deployment) { d.Status.AvailableReplicas, d.Status.ObservedGeneration = 3, 1 }), before: 4},
		"one of a wrong image":         {is: deployment(func(d *appsv1.Deployment) { d.Status.AvailableReplicas, d.Status.UpdatedReplicas = 3, 1 }), pods: []corev1.Pod{pod("a", waiting("ImagePullBackOff"))}, before: 4, want: health.ReasonImagePullBackOff},
		"one that is stuck":            {is: deployment(condition(appsv1.DeploymentProgressing, corev1.ConditionFalse, 3)), before: 4, want: health.ReasonUpdateStuck},
		"replicas are added":           {is: deployment(available(2)), pods: []corev1.Pod{pod("a", waiting("ContainerCreating")), pod("b", unschedulable)}, before: 2},
		"they are refused":             {is: deployment(condition(appsv1.DeploymentReplicaFailure, corev1.ConditionTrue, 2)), before: 2, want: health.ReasonPodsRefused},
		"a node is lost":               {is: deployment(available(3)), before: 4, want: health.ReasonReplicasUnavailable},
		"and there is no other":        {is: deployment(available(3)), pods: []corev1.Pod{pod("a", unschedulable)}, before: 4, want: health.ReasonUnschedulable},
		"a StatefulSet lost one":       {is: set("2", 2), before: 3, want: health.ReasonReplicasUnavailable},
		"a StatefulSet is updated":     {is: set("1", 2), before: 3},
		"a StatefulSet is about to be": {is: set("2", 1), before: 3},
		"a StatefulSet has one more":   {is: set("2", 2), before: 2},
		"a DaemonSet lost one":         {is: daemons(3), before: 3, want: health.ReasonReplicasUnavailable},
		"a DaemonSet is updated":       {is: daemons(1), before: 3},
		"a DaemonSet has a node more":  {is: daemons(3), before: 2},
		"nor before the start":         {is: daemons(3), want: health.ReasonReplicasUnavailable},
		"nothing is known of before":   {is: deployment(available(3)), want: health.ReasonReplicasUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			o, err := runtime.DefaultUnstructuredConverter.ToUnstructured(tc.is)
			g.Expect(err).NotTo(HaveOccurred())
			found, before := health.Evaluate(&unstructured.Unstructured{Object: o}, tc.pods, health.Before{Available: tc.before})
			if tc.want == "" {
				g.Expect(found).To(BeNil())
				g.Expect(before.Available).To(Equal(tc.before), "the most that were seen")
				return
			}
			g.Expect(found).NotTo(BeNil())
			g.Expect(found.Reason).To(Equal(tc.want))
			g.Expect(found.Message).To(MatchRegexp(" of [34] replicas are available"))
			g.Expect(found.Seen != "").To(Equal(tc.want == health.ReasonReplicasUnavailable || tc.want == health.ReasonUnschedulable))
			g.Expect(strings.Contains(found.Message, "secret")).To(BeFalse(), fmt.Sprint("the cluster's words: ", found.Message))
			isSaid := slices.Contains([]string{health.ReasonUnschedulable, health.ReasonImagePullBackOff, health.ReasonContainerError}, tc.want)
			text := found.Text(func(words string) string { return strings.ReplaceAll(words, "secret", "word") })
			g.Expect(strings.HasSuffix(text, ": a word")).To(Equal(isSaid), text)
		})
	}
}
