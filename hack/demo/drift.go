// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// repairBuilt says whether Chandler repairs drift. Once it does, the demo insists on it.
	repairBuilt = false
	// repairWindow is how long the demo watches for the repair.
	repairWindow = 5 * time.Second
)

// drift deletes an add-on's object behind Chandler's back, and watches whether it comes back.
func (d *demo) drift(ctx context.Context) error {
	m := d.members[0]
	d.out.heading("Drift", fmt.Sprintf("Somebody deletes service/%s in %s.", upgraded, m.name))
	service := &corev1.Service{}
	if err := m.client.Get(ctx, client.ObjectKey{Namespace: upgraded, Name: upgraded}, service); err != nil {
		return err
	}
	events, err := m.client.Watch(ctx, &corev1.ServiceList{}, client.InNamespace(upgraded),
		client.MatchingFields{metav1.ObjectNameField: upgraded})
	if err != nil {
		return err
	}
	defer events.Stop()
	deleted := time.Now()
	if err := m.client.Delete(ctx, service); err != nil {
		return err
	}
	repaired, err := another(ctx, events, service.UID)
	switch {
	case err != nil:
		return err
	case repaired:
		d.out.printf("  %s It is back after %.1f s.\n", d.out.paint(green, "✓"), time.Since(deleted).Seconds())
		return nil
	case repairBuilt:
		return fmt.Errorf("%s: service/%s was not repaired within %s", m.name, upgraded, repairWindow)
	}
	d.out.printf("  %s It is not back after %.0f s: drift repair is not built yet.\n", d.out.paint(yellow, "–"), repairWindow.Seconds())
	return nil
}

// another waits for an object with another UID.
func another(ctx context.Context, events watch.Interface, old types.UID) (bool, error) {
	window := time.NewTimer(repairWindow)
	defer window.Stop()
	for {
		select {
		case event, open := <-events.ResultChan():
			if !open {
				return false, errors.New("the watch on the Service ended")
			}
			obj, ok := event.Object.(client.Object)
			if ok && event.Type == watch.Added && obj.GetUID() != old {
				return true, nil
			}
		case <-window.C:
			return false, nil
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
	}
}
