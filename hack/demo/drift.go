// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// drift changes objects of an add-on with kubectl, and waits until each is as it was.
func (d *demo) drift(ctx context.Context) error {
	m := d.members[0]
	heading("Drift: somebody changes the add-on %s on %s with kubectl.", upgraded, m.name)
	deployment := &appsv1.Deployment{}
	for _, change := range []struct {
		command string
		obj     client.Object
		is      func() string
	}{
		{"delete service " + upgraded, &corev1.Service{}, func() string { return "the Service is there again" }},
		{"set image deployment/" + upgraded + " *=example.com/other:1", deployment, func() string { return "its image is " + deployment.Spec.Template.Spec.Containers[0].Image }},
		{"label --overwrite deployment/" + upgraded + " " + chartLabel + "=mine", deployment, func() string { return "its label is " + chartLabel + "=" + deployment.Labels[chartLabel] }},
	} {
		get := func() error {
			return m.client.Get(ctx, client.ObjectKey{Namespace: upgraded, Name: upgraded}, change.obj)
		}
		if err := get(); err != nil {
			return err
		}
		before := change.is()
		if err := d.kubectl(ctx, m.name, append(strings.Fields(change.command), "--namespace", upgraded)...); err != nil {
			return err
		}
		started := time.Now()
		if err := d.until(ctx, func() error {
			err := get()
			if err == nil && change.is() != before {
				err = fmt.Errorf("%s: not repaired after kubectl %s", m.name, change.command)
			}
			return err
		}); err != nil {
			return err
		}
		fmt.Printf("  %5.2f s  kubectl %s: %s\n", time.Since(started).Seconds(), change.command, before)
	}
	return d.showDrift(ctx, m)
}

// showDrift prints what the ClusterAddon says of it.
func (d *demo) showDrift(ctx context.Context, m *member) error {
	return d.until(ctx, func() error {
		ca, err := d.clusterAddon(ctx, m)
		if err != nil {
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
