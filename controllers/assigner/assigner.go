// SPDX-License-Identifier: Apache-2.0

// Package assigner gives Clusters to instances: it labels those without a watch filter with that of an instance, and moves them when
// instances come and go. It runs beside the webhooks, in the deployment that all instances share, and is off by default.
package assigner

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/assigner/place"
)

// Options say where Clusters are assigned, and how fast they move.
type Options struct {
	// Namespaces whose Clusters are assigned. Empty: none are.
	Namespaces []string
	// MovesPerHour is how many Clusters go from one instance to another within an hour.
	MovesPerHour int
}

// Assigner assigns Clusters. One replica of the shared deployment runs it: each counts the moves that it sees.
//
// It needs the rights of config/assigner in its namespaces. No marker says so here, since instances must not have them.
type Assigner struct {
	Options
	// Client has a cache of the ProviderInstances, and of the metadata of the namespaces' Clusters.
	Client client.Client
	// APIReader reads what is decided by: a cache that is behind would count too few moves.
	APIReader client.Reader
	Recorder  events.EventRecorder
	Clock     clock.PassiveClock
}

// interval is how often Clusters are looked at without an event: one that was busy says nothing of it in its metadata.
const interval = time.Minute

// Reconcile looks at all Clusters at once. If the cache shows something to do, it asks the API server.
func (a *Assigner) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	w, err := a.gather(ctx, a.Client, client.UnsafeDisableDeepCopy) // they are only read
	if err == nil && len(w.next()) > 0 {
		w, err = a.gather(ctx, a.APIReader)
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	labels, err := a.decide(ctx, w)
	if err != nil {
		return reconcile.Result{}, err
	}
	for _, label := range labels {
		if err := a.write(ctx, w, label); err != nil {
			return reconcile.Result{}, err
		}
	}
	return reconcile.Result{RequeueAfter: interval}, nil
}

// decide returns the labels to write now. Of a Cluster that is to move, it first asks whether it is busy; then another one may move.
func (a *Assigner) decide(ctx context.Context, w *world) ([]place.Label, error) {
	asked := map[client.ObjectKey]bool{}
	for {
		labels, again := w.next(), false
		for _, label := range labels {
			key := client.ObjectKey{Namespace: label.Namespace, Name: label.Name}
			if !label.Move || asked[key] {
				continue
			}
			busy, err := a.isBusy(ctx, key)
			if err != nil {
				return nil, err
			}
			asked[key], again = true, again || busy
			w.clusters[w.at[key]].Busy = busy
		}
		if !again {
			return labels, nil
		}
		if len(asked) > maxAsked*max(1, a.MovesPerHour) { // most of the fleet is busy: those that are idle move, others later
			return withoutBusy(labels, w), nil
		}
	}
}

// maxAsked is how many Clusters are asked about at a time, as a multiple of those that may move in an hour.
const maxAsked = 4

func withoutBusy(labels []place.Label, w *world) (idle []place.Label) {
	for _, label := range labels {
		if !w.clusters[w.at[client.ObjectKey{Namespace: label.Namespace, Name: label.Name}]].Busy {
			idle = append(idle, label)
		}
	}
	return idle
}

// write labels a Cluster, unless it was written since. That comes back as an event.
func (a *Assigner) write(ctx context.Context, w *world, label place.Label) error {
	key := client.ObjectKey{Namespace: label.Namespace, Name: label.Name}
	annotations := map[string]string{addonsv1.AssignedFilterAnnotation: label.Filter}
	if label.Move {
		annotations[addonsv1.MovedAtAnnotation] = a.Clock.Now().UTC().Format(time.RFC3339)
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"resourceVersion": w.versions[key], "labels": map[string]string{clusterv1.WatchLabel: label.Filter}, "annotations": annotations,
	}})
	if err != nil {
		return fmt.Errorf("labelling Cluster %s: %w", key, err)
	}
	cluster := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	cluster.SetGroupVersionKind(clusterv1.GroupVersion.WithKind("Cluster"))
	switch err := a.Client.Patch(ctx, cluster, client.RawPatch(types.MergePatchType, patch)); {
	case apierrors.IsConflict(err) || apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("labelling Cluster %s: %w", key, err)
	}
	cluster.SetGroupVersionKind(clusterv1.GroupVersion.WithKind("Cluster"))
	reason, note := "InstanceAssigned", "It had none"
	if label.Move {
		reason, note = "InstanceChanged", "It had "+w.clusters[w.at[key]].Filter
	}
	a.Recorder.Eventf(cluster, nil, corev1.EventTypeNormal, reason, "Assign", "The provider instance with watch filter %s manages this Cluster from now on. %s", label.Filter, note)
	return nil
}
