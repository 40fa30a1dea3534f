// SPDX-License-Identifier: Apache-2.0

package actions

import (
	"fmt"
	"maps"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

func percent(n int) *intstr.IntOrString { return ptr.To(intstr.FromString(fmt.Sprintf("%d%%", n))) }

// setRollout gives a stack a rollout, or takes it away.
func (f *fleet) setRollout() bool {
	s, kind := f.random.IntN(stacks), f.random.IntN(9)-3
	if !f.now().stacks[s].exists || kind < 2 && f.now().stacks[s].rollout == nil {
		return false
	}
	var is *addonsv1.Rollout
	if kind >= 2 {
		is = &addonsv1.Rollout{MinReady: &metav1.Duration{}, MaxConcurrent: percent(50)}
		if f.random.IntN(2) == 0 {
			is.OnFailure = addonsv1.RolloutRollBack
		}
		if f.random.IntN(3) == 0 {
			is.MaxFailed = percent(30)
		}
	}
	switch kind {
	case 2:
		is = &addonsv1.Rollout{}
	case 3, 4:
		is.Waves = []addonsv1.RolloutWave{{Name: "canary", Size: ptr.To(intstr.FromInt32(1))}}
	case 5:
		is.Waves = []addonsv1.RolloutWave{
			{Name: "canary", Size: ptr.To(intstr.FromInt32(1))},
			{Name: "gold", ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "gold"}}, Approval: addonsv1.RolloutApprovalRequired, Optional: true},
		}
	}
	f.act("roll %s out by %+v", stackName(s), is)
	f.editStack(s, func(m *model) { m.stacks[s].rollout = is })
	return true
}

// steerRollout approves, promotes, rejects, tries again or resumes the rollout of a stack.
func (f *fleet) steerRollout() bool {
	s, what := f.random.IntN(stacks), f.random.IntN(8)
	of := f.rolling(s)
	if of == nil {
		return false
	}
	switch {
	case what < 2:
		f.steer(s, of, addonsv1.RolloutApprovedAnnotation, fmt.Sprintf("%q", of.Wave))
	case what == 2:
		f.steer(s, of, addonsv1.RolloutApprovedAnnotation, `"*"`)
	case what == 3:
		f.steer(s, of, addonsv1.RolloutPromotedAnnotation, fmt.Sprintf("%q", of.Wave))
	case what == 4:
		f.evens[s] = nil // clusters may go back to anything from before
		f.steer(s, of, addonsv1.RolloutRejectedAnnotation, `"the operator says so"`)
	case what == 5 || what == 6:
		f.steer(s, of, addonsv1.RolloutHaltedAnnotation, "null")
	default:
		f.steer(s, of, addonsv1.RolloutRejectedAnnotation, "null")
	}
	return true
}

// rolling returns the state of a stack's rollout, nil if there is none.
func (f *fleet) rolling(s int) *addonsv1.RolloutStatus {
	f.t.Helper()
	is := &addonsv1.AddonStack{}
	if err := f.hub().Get(f.ctx(), client.ObjectKey{Namespace: f.namespace, Name: stackName(s)}, is); client.IgnoreNotFound(err) != nil {
		f.t.Fatal(err)
	}
	if is.Spec.Rollout == nil || is.Status.Rollout == nil || is.Status.Rollout.Revision == "" {
		return nil
	}
	return is.Status.Rollout
}

func (f *fleet) steer(s int, of *addonsv1.RolloutStatus, annotation, value string) {
	f.t.Helper()
	f.act("set %s=%s on %s of %s, which is %s", annotation, value, of.Revision, stackName(s), of.Phase)
	f.annotate(of, annotation, value)
}

func (f *fleet) annotate(of *addonsv1.RolloutStatus, annotation, value string) {
	f.t.Helper()
	f.patch(f.hub(), &appsv1.ControllerRevision{ObjectMeta: f.named(of.Revision)}, fmt.Sprintf(`{"metadata":{"annotations":{%q:%s}}}`, annotation, value))
}

// openGates lets all rollouts go on to the end.
func (f *fleet) openGates() {
	f.t.Helper()
	for s := range stacks {
		of := f.rolling(s)
		if of == nil || of.Phase == addonsv1.RolloutCompleted {
			continue
		}
		f.annotate(of, addonsv1.RolloutApprovedAnnotation, `"*"`)
		f.annotate(of, addonsv1.RolloutRejectedAnnotation, "null")
		f.annotate(of, addonsv1.RolloutHaltedAnnotation, "null")
	}
}

// holdCluster has changes of stacks not reach a cluster, or ends that.
func (f *fleet) holdCluster() bool {
	c, value := f.random.IntN(min(len(f.workloads), 3)), "*" // mostly one that is held already
	if f.random.IntN(2) == 0 {
		value = stackName(f.random.IntN(stacks))
	}
	isHeld := f.now().clusters[c].held
	f.act("hold %s of %s: %t", value, clusterName(c), !isHeld)
	f.setHeld(c, !isHeld, value)
	return true
}

func (f *fleet) setHeld(c int, held bool, value string) {
	f.t.Helper()
	f.change(func(m *model) { m.clusters[c].held = held }, func() {
		edit(f, &addonsv1.ClusterAddon{ObjectMeta: f.named(clusterName(c))}, func(o *addonsv1.ClusterAddon) {
			delete(o.Annotations, addonsv1.HoldRolloutAnnotation)
			if held {
				metav1.SetMetaDataAnnotation(&o.ObjectMeta, addonsv1.HoldRolloutAnnotation, value)
			}
		})
	})
}

// noteEven notes which stacks have their newest revision on each of their clusters. It is called at rest.
func (f *fleet) noteEven() {
	f.t.Helper()
	cas, now := &addonsv1.ClusterAddonList{}, time.Now()
	if err := f.hub().List(f.ctx(), cas, client.InNamespace(f.namespace)); err != nil {
		return // the kind is gone
	}
	for s := range stacks {
		is := &addonsv1.AddonStack{}
		err := f.hub().Get(f.ctx(), client.ObjectKey{Namespace: f.namespace, Name: stackName(s)}, is)
		latest := is.Status.LatestRevision
		if err == nil {
			of := is.Status.Rollout
			if is.Status.ObservedGeneration != is.Generation || f.now().stacks[s].paused || is.Spec.Rollout != nil && (of == nil || of.Phase != addonsv1.RolloutCompleted) {
				continue
			}
		} else if client.IgnoreNotFound(err) != nil {
			continue
		}
		if !slices.ContainsFunc(cas.Items, func(ca addonsv1.ClusterAddon) bool {
			return slices.ContainsFunc(ca.Spec.Stacks, func(of addonsv1.StackRevision) bool { return of.Name == stackName(s) && of.Revision != latest })
		}) {
			f.evens[s] = append(f.evens[s], now)
		}
	}
}

// unevenSince returns since when clusters may have another revision than the newest one of a stack that has the component,
// because of a rollout.
func (f *fleet) unevenSince(k int, at time.Time) (since time.Time, is bool) {
	for s := range stacks {
		from := f.moments[0].end
		for _, even := range f.evens[s] {
			if even.Before(at) {
				from = even
			}
		}
		hasRollout, has := false, false
		for _, m := range f.during(from, at) {
			hasRollout, has = hasRollout || m.stacks[s].rollout != nil, has || m.stacks[s].has[k]
		}
		if hasRollout && has && (!is || from.Before(since)) {
			since, is = from, true
		}
	}
	return since, is
}

// stepped reports whether a rollout may bring a cluster to a state of the fleet in which nothing wants the component there,
// or not its second ConfigMap.
func (j *evaluate) stepped(k int, at time.Time, isExtra bool) bool {
	since, is := j.unevenSince(k, at)
	if !is {
		return false
	}
	j.steps++
	all := j.during(since, at)
	var labels []map[string]string
	for _, m := range all {
		if of := m.clusters[j.cluster].labels; !slices.ContainsFunc(labels, func(l map[string]string) bool { return maps.Equal(l, of) }) {
			labels = append(labels, of)
		}
	}
	for _, m := range all {
		if isExtra && !m.components[k].extra {
			return true
		}
		if is := m.shares[share{j.cluster, k}]; is.standing == lost && (is.sealed || m.stacks[is.stack].orphan) {
			continue
		}
		for _, of := range labels {
			if !slices.ContainsFunc(m.stacks[:], func(s stack) bool { return s.exists && s.has[k] && selects(s.selector, of) }) {
				return true
			}
		}
	}
	return false
}
