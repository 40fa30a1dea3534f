// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// drift changes objects of an add-on with kubectl, and waits until each is as it was.
func (d *demo) drift(ctx context.Context) error {
	m, name := d.members[0], metav1.ObjectMeta{Namespace: upgraded, Name: upgraded}
	heading("Drift: somebody changes the add-on %s on %s with kubectl.", upgraded, m.name)
	service, deployment := &corev1.Service{ObjectMeta: name}, &appsv1.Deployment{ObjectMeta: name}
	if err := m.client.Get(ctx, client.ObjectKeyFromObject(deployment), deployment); err != nil {
		return err
	}
	image, label := deployment.Spec.Template.Spec.Containers[0].Image, deployment.Labels[chartLabel]
	container := deployment.Spec.Template.Spec.Containers[0].Name
	for _, change := range []struct {
		command []string
		is      string
		obj     client.Object
		holds   func() bool
	}{
		{[]string{"delete", "service", upgraded}, "the Service is there again", service, func() bool { return service.UID != "" && service.DeletionTimestamp == nil }},
		{[]string{"set", "image", "deployment/" + upgraded, container + "=example.com/other:1"}, "its image is " + image, deployment,
			func() bool { return deployment.Spec.Template.Spec.Containers[0].Image == image }},
		{[]string{"label", "--overwrite", "deployment/" + upgraded, chartLabel + "=mine"}, fmt.Sprintf("its label is %s=%s", chartLabel, label), deployment,
			func() bool { return deployment.Labels[chartLabel] == label }},
	} {
		if err := m.client.Get(ctx, client.ObjectKeyFromObject(change.obj), change.obj); err != nil {
			return err
		}
		before := change.obj.GetUID()
		if err := d.kubectl(ctx, m, change.command...); err != nil {
			return err
		}
		started := time.Now()
		if err := d.until(ctx, func() error {
			err := m.client.Get(ctx, client.ObjectKeyFromObject(change.obj), change.obj)
			if err == nil && (!change.holds() || change.command[0] == "delete" && change.obj.GetUID() == before) {
				err = fmt.Errorf("%s: not repaired after kubectl %s", m.name, strings.Join(change.command, " "))
			}
			return err
		}); err != nil {
			return err
		}
		fmt.Printf("  %5.2f s  kubectl %s: %s\n", time.Since(started).Seconds(), strings.Join(change.command, " "), change.is)
	}
	return d.showDrift(ctx, m)
}

// showDrift prints what the ClusterAddon says of it.
func (d *demo) showDrift(ctx context.Context, m *member) error {
	return d.until(ctx, func() error {
		ca := &addonsv1.ClusterAddon{}
		if err := d.management.Get(ctx, types.NamespacedName{Namespace: namespace, Name: m.name}, ca); err != nil {
			return err
		}
		for _, a := range ca.Status.Addons {
			if a.Name == upgraded && a.Drift != nil && a.Drift.Repaired >= 3 && a.Drift.Objects == 0 {
				fmt.Printf("  The ClusterAddon says: %d repairs, the last one at %s: %s\n", a.Drift.Repaired, a.Drift.LastTime.UTC().Format(time.TimeOnly), a.Drift.Message)
				return nil
			}
		}
		return fmt.Errorf("ClusterAddon %s doesn't tell of three repairs", m.name)
	})
}

// kubectl runs the real one against a workload cluster.
func (d *demo) kubectl(ctx context.Context, m *member, args ...string) error {
	args = append([]string{"--kubeconfig", d.file(m.name + ".kubeconfig"), "--namespace", upgraded}, args...)
	if out, err := exec.CommandContext(ctx, filepath.Join(d.binDir, "kubectl"), args...).CombinedOutput(); err != nil {
		return fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return nil
}
