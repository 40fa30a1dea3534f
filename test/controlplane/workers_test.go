// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/cluster-chandler/chandler/test/controlplane"
)

const patience = 30 * time.Second

func TestWorkers(t *testing.T) {
	c := start(t, controlplane.Options{Name: "workload", Workers: true, Nodes: 2})
	client := clientset(t, c.Config())
	deployments, jobs := client.AppsV1().Deployments("default"), client.BatchV1().Jobs("default")

	t.Run("a Deployment becomes available", func(t *testing.T) {
		t.Parallel()
		g := NewWithT(t)
		_, err := deployments.Create(t.Context(), deployment("web", ""), metav1.CreateOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Eventually(t.Context(), func(g Gomega) {
			d, err := deployments.Get(t.Context(), "web", metav1.GetOptions{})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(d.Status.AvailableReplicas).To(BeEquivalentTo(3))
		}).WithTimeout(patience).Should(Succeed())
	})

	t.Run("a Deployment of stuck pods does not", func(t *testing.T) {
		t.Parallel()
		g := NewWithT(t)
		_, err := deployments.Create(t.Context(), deployment("stuck", controlplane.PodStuck), metav1.CreateOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Eventually(t.Context(), func(g Gomega) {
			d, err := deployments.Get(t.Context(), "stuck", metav1.GetOptions{})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(d.Status.UnavailableReplicas).To(BeEquivalentTo(3))
		}).WithTimeout(patience).Should(Succeed())
		g.Consistently(t.Context(), func(g Gomega) {
			d, err := deployments.Get(t.Context(), "stuck", metav1.GetOptions{})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(d.Status.ReadyReplicas).To(BeZero())
		}).Should(Succeed())
	})

	for name, test := range map[string]struct {
		fate string
		want batchv1.JobConditionType
	}{
		"a Job completes": {fate: "", want: batchv1.JobComplete},
		"a Job can fail":  {fate: controlplane.PodFails, want: batchv1.JobFailed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			job, err := jobs.Create(t.Context(), job(test.fate), metav1.CreateOptions{})
			g.Expect(err).NotTo(HaveOccurred())
			g.Eventually(t.Context(), func(g Gomega) {
				job, err := jobs.Get(t.Context(), job.Name, metav1.GetOptions{})
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(job.Status.Conditions).To(ContainElement(And(
					HaveField("Type", test.want), HaveField("Status", corev1.ConditionTrue))))
			}).WithTimeout(patience).Should(Succeed())
		})
	}

	t.Run("a deleted owner takes its dependents with it", func(t *testing.T) {
		t.Parallel()
		g := NewWithT(t)
		configMaps := client.CoreV1().ConfigMaps("default")
		owner, err := configMaps.Create(t.Context(),
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "owner"}}, metav1.CreateOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		_, err = configMaps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Name: "dependent",
			OwnerReferences: []metav1.OwnerReference{
				{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID},
			},
		}}, metav1.CreateOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(configMaps.Delete(t.Context(), owner.Name, metav1.DeleteOptions{})).To(Succeed())
		g.Eventually(t.Context(), func() bool {
			_, err := configMaps.Get(t.Context(), "dependent", metav1.GetOptions{})
			return apierrors.IsNotFound(err)
		}).WithTimeout(patience).Should(BeTrue())
	})

	t.Run("a namespace goes away with what it holds", func(t *testing.T) {
		t.Parallel()
		g := NewWithT(t)
		namespaces := client.CoreV1().Namespaces()
		_, err := namespaces.Create(t.Context(),
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}}, metav1.CreateOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		_, err = client.AppsV1().Deployments("team").Create(t.Context(), deployment("web", ""), metav1.CreateOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Eventually(t.Context(), func(g Gomega) {
			_, err := client.CoreV1().ConfigMaps("team").Get(t.Context(), "kube-root-ca.crt", metav1.GetOptions{})
			g.Expect(err).NotTo(HaveOccurred())
			pods, err := client.CoreV1().Pods("team").List(t.Context(), metav1.ListOptions{})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(pods.Items).To(HaveLen(3))
		}).WithTimeout(patience).Should(Succeed())
		g.Expect(namespaces.Delete(t.Context(), "team", metav1.DeleteOptions{})).To(Succeed())
		g.Eventually(t.Context(), func() bool {
			_, err := namespaces.Get(t.Context(), "team", metav1.GetOptions{})
			return apierrors.IsNotFound(err)
		}).WithTimeout(patience).Should(BeTrue())
	})
}

func deployment(name, fate string) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](3),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: podTemplate(labels, fate, corev1.RestartPolicyAlways),
		},
	}
}

func job(fate string) *batchv1.Job {
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "job-"},
		Spec: batchv1.JobSpec{
			BackoffLimit: ptr.To[int32](0),
			Template:     podTemplate(nil, fate, corev1.RestartPolicyNever),
		},
	}
}

func podTemplate(labels map[string]string, fate string, restart corev1.RestartPolicy) corev1.PodTemplateSpec {
	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels},
		Spec: corev1.PodSpec{
			RestartPolicy:  restart,
			InitContainers: []corev1.Container{{Name: "init", Image: "example.test/init:1"}},
			Containers:     []corev1.Container{{Name: "main", Image: "example.test/main:1"}},
		},
	}
	if fate != "" {
		template.Annotations = map[string]string{controlplane.PodFate: fate}
	}
	return template
}
