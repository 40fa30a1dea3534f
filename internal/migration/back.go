// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// Back returns the steps that leave plain releases of Helm in place of the AddonStacks that a migration made: those of the
// names, or all. An AddonStack that is gone may have Secrets and labels still. One that others made stays, with these.
func (w *World) Back(ctx context.Context) ([]Step, error) {
	stacks, others, noStacks := w.stacks(ctx)
	secrets, clusters := &corev1.SecretList{}, &clusterv1.ClusterList{}
	err := errors.Join(noStacks, w.list(ctx, secrets, client.MatchingLabels{originLabel: string(w.Origin)}), w.list(ctx, clusters))
	if err != nil {
		return nil, err
	}
	last := map[string][]Step{} // by the name of the stack
	for _, s := range stacks {
		last[s.Name] = nil
	}
	for i := range secrets.Items {
		name := secrets.Items[i].Labels[stackLabel]
		last[name] = append(last[name], w.remove(&secrets.Items[i]))
	}
	for i := range clusters.Items {
		for label, origin := range clusters.Items[i].Labels {
			if name, ok := strings.CutPrefix(label, clusterLabelPrefix); ok && origin == string(w.Origin) {
				last[name] = append(last[name], w.label(clusters.Items[i].Name, label, "null"))
			}
		}
	}
	var steps []Step
	for _, name := range slices.Sorted(maps.Keys(last)) {
		if !slices.Contains(others, name) && (len(w.Names) == 0 || slices.Contains(w.Names, name)) {
			steps = slices.Concat(steps, w.leave(name), last[name])
		}
	}
	return steps, nil
}

// leave returns the steps that delete an AddonStack, and leave its releases in the clusters. They have to know of that
// before it is deleted.
func (w *World) leave(name string) []Step {
	s := &addonsv1.AddonStack{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: name}}
	return []Step{
		w.patch("set spec.deletionPolicy of AddonStack "+name+" to Orphan", s.DeepCopy(), `{"spec":{"deletionPolicy":"Orphan"}}`),
		w.awaitClusters("wait until the clusters know that AddonStack "+name+" leaves its releases", func(ca *addonsv1.ClusterAddon) bool {
			is := stack.Assigned(ca.Spec.Stacks, name)
			return is.Name == name && (is.DeletionPolicy != addonsv1.DeletionPolicyOrphan || hasAddons(ca, name) && !stack.LeavesAddons(ca, name))
		}),
		{"delete AddonStack " + name, func(ctx context.Context) error { return client.IgnoreNotFound(w.Client.Delete(ctx, s)) }},
		w.awaitClusters("wait until the clusters are without AddonStack "+name, func(ca *addonsv1.ClusterAddon) bool {
			return stack.Assigned(ca.Spec.Stacks, name).Name == name ||
				ca.DeletionTimestamp.IsZero() && hasAddons(ca, name)
		}),
	}
}

// hasAddons reports whether a cluster has, or had, add-ons of a stack.
func hasAddons(ca *addonsv1.ClusterAddon, name string) bool {
	return slices.ContainsFunc(ca.Status.Addons, func(a addonsv1.AddonStatus) bool { return a.Stack == name })
}

// awaitClusters makes a step that waits while a cluster isn't through.
func (w *World) awaitClusters(step string, waits func(*addonsv1.ClusterAddon) bool) Step {
	return await(step, func(ctx context.Context) (string, error) {
		cas := &addonsv1.ClusterAddonList{}
		if err := w.list(ctx, cas); err != nil {
			return "", err
		}
		for i := range cas.Items {
			if waits(&cas.Items[i]) {
				return "cluster " + cas.Items[i].Name + " has it still", nil
			}
		}
		return "", nil
	})
}
