// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	illness "github.com/cluster-chandler/chandler/internal/health"
	"github.com/cluster-chandler/chandler/test/controlplane"
	"github.com/cluster-chandler/chandler/test/long"
)

// scaledChart has a Deployment that others scale, and a Service that others give an address.
var scaledChart = chart{"templates/all.yaml": `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main, image: registry.example/web}]}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {type: LoadBalancer, selector: {app: web}, ports: [{port: 80}]}
`}

// newScaled returns a cluster with an add-on web of scaledChart, of two replicas.
func newScaled(t *testing.T, number int) *drifting {
	t.Helper()
	t.Parallel()
	d := &drifting{tenant: newTenant(t), s: workloadServer(t, number)}
	d.makeCluster("prod", d.s, nil)
	d.startManager()
	d.makeStack("platform", nil, d.addon("web", d.writeChart("web", "1.0.0", scaledChart), func(a *addonsv1.Addon) {
		a.Readiness = []addonsv1.ReadinessCheck{{APIVersion: "v1", Kind: "Service", Expression: "size(self.status.loadBalancer.ingress) > 0"}}
	}))
	d.setDegradedAfter("platform", degradedSoon)
	d.awaitCluster("prod", "it has no address yet", phase("web", addonsv1.AddonInstalling, "WaitingForObjects", "Service"))
	d.giveAddress("192.0.2.1")
	d.awaitReady("platform", "it is installed")
	d.scale(2)
	d.awaitLook()
	return d
}

// awaitLook changes what others own of the Deployment, and waits until the manager has looked at it: replicas that it
// has never seen available aren't missed.
func (d *drifting) awaitLook() {
	d.t.Helper()
	mark := d.s.mark(d.t)
	d.patch(d.deployment(), "somebody", `{"metadata":{"annotations":{"example.org/look":"now"}}}`)
	poll(d.t, patience, "the Deployment is to be looked at", func() error {
		if len(reads(mark.requests(d.t, d.clusterUser("prod")), "deployments", "web", "get")) == 0 {
			return errors.New("it isn't")
		}
		return nil
	})
}

// giveAddress has the Service's status name an address, or none.
func (d *drifting) giveAddress(addresses ...string) {
	d.t.Helper()
	service := d.service()
	d.Expect(d.s.Get(d.t.Context(), client.ObjectKeyFromObject(service), service)).To(Succeed())
	service.Status.LoadBalancer = corev1.LoadBalancerStatus{}
	for _, ip := range addresses {
		service.Status.LoadBalancer.Ingress = append(service.Status.LoadBalancer.Ingress, corev1.LoadBalancerIngress{IP: ip})
	}
	d.Expect(d.s.Status().Update(d.t.Context(), service)).To(Succeed())
}

// scale has the Deployment have as many replicas, as an autoscaler does, and waits for them.
func (d *drifting) scale(replicas int32) {
	d.t.Helper()
	scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: replicas}}
	d.Expect(d.s.SubResource("scale").Update(d.t.Context(), d.deployment(), client.WithSubResourceBody(scale))).To(Succeed())
	await(d.t, d.s, d.deployment(), patience, "it is scaled", func(o *appsv1.Deployment) error {
		if o.Status.AvailableReplicas != replicas || o.Status.Replicas != replicas {
			return fmt.Errorf("%d of %d replicas are available", o.Status.AvailableReplicas, o.Status.Replicas)
		}
		return nil
	})
}

// pods returns the Deployment's pods that aren't deleted.
func (d *drifting) pods() []corev1.Pod {
	d.t.Helper()
	pods := &corev1.PodList{}
	d.Expect(d.s.List(d.t.Context(), pods, client.InNamespace(d.namespace), client.MatchingLabels{"app": "web"})).To(Succeed())
	var alive []corev1.Pod
	for _, p := range pods.Items {
		if p.DeletionTimestamp == nil {
			alive = append(alive, p)
		}
	}
	return alive
}

// setReady writes whether a pod is ready.
func (d *drifting) setReady(p *corev1.Pod, status corev1.ConditionStatus) {
	d.t.Helper()
	controlplane.SetReady(p, status)
	d.Expect(d.s.Status().Update(d.t.Context(), p)).To(Succeed())
}

// TestDegradedByCluster has nodes, images and addresses go that an installed add-on needs.
func TestDegradedByCluster(t *testing.T) {
	long.Test(t)
	d := newScaled(t, 1)
	lost := d.pods()[0]
	d.setReady(&lost, corev1.ConditionFalse)
	d.awaitCluster("prod", "a node is lost", phase("web", addonsv1.AddonDegraded, illness.ReasonReplicasUnavailable, "1 of 2"))
	d.setReady(&lost, corev1.ConditionTrue)
	d.awaitCluster("prod", "it is back", ready("web"))

	broken := d.breakPod("ImagePullBackOff")
	d.awaitCluster("prod", "an image is gone", phase("web", addonsv1.AddonDegraded, illness.ReasonImagePullBackOff, broken.Name),
		phase("web", addonsv1.AddonDegraded, "", ": back-off")) // as the kubelet says
	d.Expect(d.s.Delete(t.Context(), broken)).To(Succeed())
	d.awaitCluster("prod", "it is there again", ready("web"))

	d.giveAddress()
	d.awaitCluster("prod", "a readiness check isn't true", phase("web", addonsv1.AddonDegraded, illness.ReasonObjectNotReady, "Service"))
	d.giveAddress("192.0.2.2")
	d.awaitCluster("prod", "it is again", ready("web"))
}

// TestNoAlarm has others scale, move and replace the pods of an installed add-on: it stays Ready all the while.
func TestNoAlarm(t *testing.T) {
	long.Test(t)
	d := newScaled(t, 2)
	end := time.Now().Add(3 * degradedSoon)
	done := make(chan struct{})
	go func() {
		defer close(done)
		d.stays(time.Until(end), "none of it is an alarm", ready("web"))
	}()
	for time.Now().Before(end) {
		d.scale(5)
		for _, p := range d.pods() { // a node is drained
			err := d.s.SubResource("eviction").Create(t.Context(), &p, &policyv1.Eviction{ObjectMeta: p.ObjectMeta})
			d.Expect(client.IgnoreNotFound(err)).To(Succeed(), "its ReplicaSet may have deleted it")
		}
		d.scale(3)
		d.patch(d.deployment(), "kubectl-rollout", fmt.Sprintf(`{"spec":{"template":{"metadata":{"annotations":{"kubectl.kubernetes.io/restartedAt":"%d"}}}}}`, time.Now().UnixNano()))
		d.scale(2)
	}
	<-done
}

// TestRestlessPodIsCheap has a pod become ready and unready every half second: what that costs the cluster is bounded.
func TestRestlessPodIsCheap(t *testing.T) {
	long.Test(t)
	d := newScaled(t, 0)
	d.settle()
	mark := d.s.mark(t)
	const length = 40 * time.Second
	begin := time.Now()
	for status := corev1.ConditionFalse; time.Since(begin) < length; time.Sleep(500 * time.Millisecond) {
		p := d.pods()[0]
		d.setReady(&p, status)
		if status == corev1.ConditionFalse {
			status = corev1.ConditionTrue
		} else {
			status = corev1.ConditionFalse
		}
	}
	asked := described(mark.requests(t, d.clusterUser("prod")), func(e auditEvent) bool { return notProbe(e) && e.Verb != "watch" })
	t.Logf("%d requests in %s", len(asked), length)
	d.Expect(len(asked)).To(BeNumerically("<=", 6), "%v", asked)
	d.Expect(asked).NotTo(BeEmpty())
}
