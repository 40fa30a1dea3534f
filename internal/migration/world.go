// SPDX-License-Identifier: Apache-2.0

// Package migration moves Helm releases of workload clusters to AddonStacks, and back. It finds the releases, decides
// which AddonStacks they become, and lists steps. Each step may be repeated, and what is done is seen by the objects that
// are there. So after an interruption all begins again.
package migration

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// Origin says which program has the releases so far.
type Origin string

// Origins.
const (
	Provider Origin = "caaph" // Cluster API Add-on Provider Helm
	Flux     Origin = "flux"
	Helm     Origin = "helm" // people, or a pipeline
)

// Origins are all that there are.
var Origins = []Origin{Provider, Flux, Helm}

const (
	// originLabel is on AddonStacks and Secrets. Its value is the Origin.
	originLabel = "migration.addons.cluster.x-k8s.io/from"
	// stackLabel on a Secret names the AddonStack that has values from it.
	stackLabel = "migration.addons.cluster.x-k8s.io/stack"
	// clusterLabelPrefix begins the label of a Cluster that an AddonStack selects; its name follows. The value is the Origin.
	clusterLabelPrefix = "migrated.addons.cluster.x-k8s.io/"
	// previousAnnotation on an AddonStack names what it was: the HelmChartProxy, or else the release.
	previousAnnotation = "migration.addons.cluster.x-k8s.io/previous"
)

// World is where releases are moved, and which ones.
type World struct {
	Client    client.Client // of the management cluster; it asks which kinds are served
	Namespace string
	Origin    Origin
	// Workload returns a client of the workload cluster that a Cluster of this name is.
	Workload func(ctx context.Context, cluster string) (client.Client, error)
	// Names of HelmChartProxies or HelmReleases, or of releases, which may have "namespace/" before them. None are all.
	Names []string
	// Selector selects the clusters whose releases are moved; nil selects all.
	Selector *metav1.LabelSelector
	// Repositories are the addresses of charts, by the chart's name.
	Repositories map[string]string
	// Renew lets charts make those values again that can't be taken over.
	Renew bool
}

// list lists objects of a kind, in the namespace unless the options have another one.
func (w *World) list(ctx context.Context, all client.ObjectList, options ...client.ListOption) error {
	if err := w.Client.List(ctx, all, append([]client.ListOption{client.InNamespace(w.Namespace)}, options...)...); err != nil {
		kind, _ := w.Client.GroupVersionKindFor(all)
		return fmt.Errorf("listing %s: %w", kind.Kind, err)
	}
	return nil
}

// object is one of another program, with the fields of its spec that matter.
type object[T any] struct {
	*unstructured.Unstructured
	Spec T
}

// read lists the objects of a kind in the namespace. Their fields are found by their names in any case.
func read[T any](ctx context.Context, w *World, kind schema.GroupVersionKind) (all []object[T], _ error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind)
	err := w.list(ctx, list)
	for i := range list.Items {
		o := object[T]{Unstructured: &list.Items[i]}
		spec, _ := json.Marshal(o.Object["spec"]) // it was read from JSON
		if err := json.Unmarshal(spec, &o.Spec); err != nil {
			return nil, fmt.Errorf("reading %s %s: %w", kind.Kind, o.GetName(), err)
		}
		all = append(all, o)
	}
	return all, err
}

// stacks returns the AddonStacks that a migration from the origin made, and the names of all others.
func (w *World) stacks(ctx context.Context) (made []addonsv1.AddonStack, others []string, _ error) {
	list := &addonsv1.AddonStackList{}
	if err := w.list(ctx, list); err != nil {
		return nil, nil, err
	}
	for _, s := range list.Items {
		if s.Labels[originLabel] == string(w.Origin) {
			made = append(made, s)
		} else {
			others = append(others, s.Name)
		}
	}
	return made, others, nil
}
