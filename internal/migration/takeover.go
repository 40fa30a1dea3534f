// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// Takeover returns the steps that make AddonStacks of what was found, and go on with those that have it already. All are
// written before the first one begins, and nothing is deleted before all are Ready.
func (f *Found) Takeover(plans []*Plan) []Step {
	var stop, write, begin, ready, remove []Step
	all := slices.DeleteFunc(slices.Clone(f.Stacks), func(s addonsv1.AddonStack) bool { return !slices.Contains(f.moved, s.Name) })
	for _, p := range plans {
		write = append(write, f.write(p)...)
		all = append(all, *p.Stack)
	}
	for _, s := range all {
		if s.Status.LatestRevision == "" { // else who paused it may resume it
			begin = append(begin, f.patch("resume AddonStack "+s.Name, s.DeepCopy(),
				`{"metadata":{"annotations":{"`+clusterv1.PausedAnnotation+`":null}}}`))
		}
		ready = append(ready, await("wait until AddonStack "+s.Name+" is Ready", func(ctx context.Context) (string, error) {
			is := &addonsv1.AddonStack{}
			err := f.Client.Get(ctx, client.ObjectKeyFromObject(&s), is)
			return notReady(is), err
		}))
	}
	for _, o := range f.owners {
		if f.Origin == Flux {
			stop = append(stop, f.patch("suspend HelmRelease "+o.GetName(), o.DeepCopy(), `{"spec":{"suspend":true}}`))
		}
		remove = append(remove, f.removeOwner(o)...)
	}
	return slices.Concat(stop, write, begin, ready, remove)
}

// write returns the steps that write a plan. An AddonStack comes after what it refers to. Objects of others aren't changed.
func (w *World) write(p *Plan) (steps []Step) {
	for _, secret := range p.Secrets {
		steps = append(steps, Step{"write Secret " + secret.GetName(), func(ctx context.Context) error {
			is := &corev1.Secret{}
			if err := w.Client.Get(ctx, client.ObjectKeyFromObject(secret), is); client.IgnoreNotFound(err) != nil {
				return err
			} else if err == nil && is.Labels[stackLabel] != p.Stack.Name {
				return fmt.Errorf("it is there, and isn't of AddonStack %s. Rename it", p.Stack.Name)
			}
			return w.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(secret.DeepCopy()), fieldOwner)
		}})
	}
	for _, cluster := range p.Clusters {
		steps = append(steps, w.label(cluster, clusterLabelPrefix+p.Stack.Name, fmt.Sprintf("%q", w.Origin)))
	}
	return append(steps, Step{"write AddonStack " + p.Stack.Name, func(ctx context.Context) error {
		return w.Client.Create(ctx, p.Stack.DeepCopy(), fieldOwner)
	}})
}

// notReady says why an AddonStack isn't Ready, in the words of its condition; "" if it is.
func notReady(s *addonsv1.AddonStack) string {
	is := meta.FindStatusCondition(s.Status.Conditions, addonsv1.ReadyCondition)
	switch isPaused := !meta.IsStatusConditionFalse(s.Status.Conditions, addonsv1.PausedCondition); {
	case is == nil || isPaused || s.Status.ObservedGeneration != s.Generation:
		return "Chandler hasn't begun"
	case is.Status != metav1.ConditionTrue:
		return is.Reason + ": " + is.Message
	}
	return ""
}

// isFromGit reports whether a program writes the object again that somebody changes or deletes.
func isFromGit(o *unstructured.Unstructured) bool {
	return o.GetLabels()["kustomize.toolkit.fluxcd.io/name"] != "" || o.GetAnnotations()["argocd.argoproj.io/tracking-id"] != ""
}

// removeOwner returns the steps that delete a previous owner's object. Nothing is uninstalled by it: Flux's controller takes
// its own finalizer from what is suspended, and the Helm add-on provider is stopped.
func (w *World) removeOwner(o *unstructured.Unstructured) (steps []Step) {
	if isFromGit(o) {
		return []Step{{"remove " + o.GetKind() + " " + o.GetName() + " from Git yourself", func(context.Context) error { return nil }}}
	}
	if w.Origin == Provider {
		steps = append(steps, w.patch("remove the finalizers of "+o.GetKind()+" "+o.GetName(), o.DeepCopy(), `{"metadata":{"finalizers":null}}`))
	}
	return append(steps, w.remove(o.DeepCopy()))
}
