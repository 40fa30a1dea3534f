// SPDX-License-Identifier: Apache-2.0

package actions

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/reasons"
	"github.com/cluster-chandler/chandler/test/wait"
)

// finish has all clusters return and all removals go on, and expects each cluster to have what is wanted.
func (f *fleet) finish() {
	f.t.Helper()
	f.act("finish")
	if f.managers[f.active] == nil {
		f.start(f.active)
	}
	if f.isMissing {
		f.writeValues()
	}
	for c := range f.workloads {
		if f.links[c] != linked {
			f.link(c)
		}
	}
	f.endBrakes()
	f.settle(20 * time.Second)
	f.evaluateAll()
	f.awaitWanted(finishing, "all is as it should be in the end", true)
	f.settle(20 * time.Second)
	f.evaluateAll()
	f.planAtRest()
	f.evaluateAll()
	deletions, steps, writes, left, forgotten := 0, 0, 0, 0, 0
	for c, j := range f.evaluates {
		deletions, steps, writes = deletions+j.deletions, steps+j.steps, writes+j.writes
		for k := range components {
			if x := (share{c, k}); f.now().shares[x].standing != wanted && f.has(x) {
				left++
			} else if f.now().shares[x].standing == wanted && f.isForgotten(x) {
				forgotten++
			}
		}
	}
	f.t.Logf("%d deletions evaluated, %d of them amid rollouts, and %d writes beside paused stacks; %d components are wanted, %d of them by a name that was forgotten, and %d others were left",
		deletions, steps, writes, f.count(wanted), forgotten, left)
	f.kill(0)
	f.kill(1)
}

func (f *fleet) count(in standing) (n int) {
	for _, is := range f.now().shares {
		if is.standing == in {
			n++
		}
	}
	return n
}

// awaitWanted waits until each cluster has what is wanted there, with the newest text.
func (f *fleet) awaitWanted(timeout time.Duration, reason string, confirms bool) {
	f.t.Helper()
	defer func() {
		if f.t.Failed() {
			f.t.Logf("the fleet then: %s", f.report())
		}
	}()
	wait.Until(f.t, timeout, reason, func() error {
		if err := f.managers[f.active].Running(); err != nil {
			return err
		}
		var wrong []error
		if confirms {
			f.openGates()
		}
		for c := range f.workloads {
			if confirms {
				f.confirmOn(c)
			}
			for k := range components {
				wrong = append(wrong, f.check(share{c, k}))
			}
		}
		return errors.Join(wrong...)
	})
}

// check compares a component on a cluster with what is wanted.
func (f *fleet) check(x share) error {
	if f.now().shares[x].standing != wanted || f.isForgotten(x) {
		return nil
	}
	about := fmt.Sprintf("%s of %s", componentName(x.component), clusterName(x.cluster))
	settings := &corev1.ConfigMap{}
	key := client.ObjectKey{Namespace: f.namespace, Name: componentName(x.component) + "-settings"}
	if err := f.workloads[x.cluster].Get(f.ctx(), key, settings); err != nil {
		return fmt.Errorf("%s: %w: %s", about, err, f.told(x))
	}
	if want := f.now().text(x.component); settings.Data["text"] != want {
		return fmt.Errorf("%s: %q, want %q: %s", about, settings.Data["text"], want, f.told(x))
	}
	return nil
}

// isForgotten reports whether the cluster has the component by another name, and Chandler leaves that as it is, and has nothing else
// take its objects: its ClusterAddon never had that name, as after a restore; its stack was deleted while a pause held the removal up;
// or the operator deleted the records of its release, so that nothing says any more that there is one.
func (f *fleet) isForgotten(x share) bool {
	ca := &addonsv1.ClusterAddon{ObjectMeta: f.named(clusterName(x.cluster))}
	if err := f.hub().Get(f.ctx(), client.ObjectKeyFromObject(ca), ca); err != nil {
		return false
	}
	return f.isWithoutRecord(x) || slices.ContainsFunc(ca.Status.Addons, func(a addonsv1.AddonStatus) bool {
		isSealed := a.Phase == addonsv1.AddonRemoving && a.Reason == reasons.StackPaused && !f.hasStack(a.Stack)
		return strings.HasPrefix(a.Name, componentName(x.component)+"-") && (isSealed || a.Phase == addonsv1.AddonUnassigned && a.Reason == reasons.StackUnknown)
	})
}

func (f *fleet) hasStack(name string) bool {
	for s := range stacks {
		if stackName(s) == name {
			return f.now().stacks[s].exists
		}
	}
	return false
}

// isWithoutRecord reports whether the component's objects are those of a release by another name whose records the operator deleted.
func (f *fleet) isWithoutRecord(x share) bool {
	if f.evaluates[x.cluster].recordless[x.component].IsZero() {
		return false
	}
	settings, records := &corev1.ConfigMap{}, &corev1.SecretList{}
	key := client.ObjectKey{Namespace: f.namespace, Name: componentName(x.component) + "-settings"}
	if err := f.workloads[x.cluster].Get(f.ctx(), key, settings); err != nil {
		return false
	}
	owner := settings.Labels[addonsv1.AddonLabel]
	err := f.workloads[x.cluster].List(f.ctx(), records, client.InNamespace(f.namespace), client.MatchingLabels{"name": owner, "owner": "helm"})
	return err == nil && owner != f.now().release(x.component) && len(records.Items) == 0
}

// told returns all that the ClusterAddon says of a component.
func (f *fleet) told(x share) string {
	ca := &addonsv1.ClusterAddon{ObjectMeta: f.named(clusterName(x.cluster))}
	if err := f.hub().Get(f.ctx(), client.ObjectKeyFromObject(ca), ca); err != nil {
		return err.Error()
	}
	said := map[string]bool{}
	for _, a := range ca.Status.Addons {
		if len(a.Name) > 2 && a.Name[:2] == componentName(x.component) {
			said[fmt.Sprintf("%s of %s is %s %s: %s", a.Name, a.Stack, a.Phase, a.Reason, a.Message)] = true
		}
	}
	for _, s := range ca.Spec.Stacks {
		said[fmt.Sprintf("%+v", s)] = true
	}
	return fmt.Sprint(slices.Sorted(maps.Keys(said)))
}
