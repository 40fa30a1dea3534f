// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/must"
)

// TestDriftStorm has people edit and delete objects at random, on five clusters at once.
func TestDriftStorm(t *testing.T) {
	long.Test(t)
	t.Parallel()
	edits := environmentNumber(t, "CHANDLER_DRIFT_EDITS", 100) // on all clusters together
	tn := newTenant(t)
	path := tn.writeChart("web", "1.0.0", webChart)
	var storms []*storm
	for i := range 5 { // two of them have their add-ons beside those of another one
		s, name, namespace := workloadServer(t, i%workloadServers), fmt.Sprintf("prod-%d", i), fmt.Sprintf("%s-%d", tn.namespace, i)
		tn.makeCluster(name, s, labels("cluster="+name))
		var addons []addonsv1.Addon
		for _, addon := range []string{"a", "b", "c", "d", "e"} {
			addons = append(addons, tn.addon(addon, path, inNamespace(namespace)))
		}
		tn.makeStack(name, labels("cluster="+name), addons...)
		storms = append(storms, &storm{
			s: s, namespace: namespace, addons: []string{"a", "b", "c", "d", "e"},
			random: rand.New(rand.NewPCG(environmentNumber(t, "CHANDLER_SEED", uint64(1)), uint64(i))), foreign: map[string]string{},
		})
	}
	tn.startManager()
	for i := range storms {
		tn.awaitReady(fmt.Sprintf("prod-%d", i), "five small add-ons are to install")
	}
	var wg sync.WaitGroup
	errs := make([]error, len(storms))
	for i, s := range storms {
		wg.Go(func() {
			for range edits / len(storms) {
				if errs[i] == nil {
					errs[i] = s.edit(t.Context())
				}
			}
		})
	}
	wg.Wait()
	tn.Expect(errs).To(HaveEach(BeNil()))
	var took []time.Duration
	for i, s := range storms {
		took = append(took, s.took...)
		tn.Expect(s.lost(t)).To(BeEmpty(), "what people added to objects is theirs")
		tn.awaitCluster(fmt.Sprintf("prod-%d", i), "all is well in the end", ready(s.addons...))
	}
	slices.Sort(took)
	at := func(percent int) time.Duration {
		return took[min(len(took)-1, len(took)*percent/100)].Round(time.Millisecond)
	}
	t.Logf("%d edits, %d repairs: median %s, p90 %s, p99 %s, longest %s", edits, len(took), at(50), at(90), at(99), at(100))
}

// storm is what people do to one cluster.
type storm struct {
	s         *server
	namespace string
	addons    []string
	random    *rand.Rand
	took      []time.Duration
	foreign   map[string]string // annotations by "kind/name", of objects that weren't deleted since
}

func (s *storm) objects(addon string) []client.Object {
	meta := func(obj client.Object) client.Object {
		obj.SetNamespace(s.namespace)
		obj.SetName(addon)
		return obj
	}
	return []client.Object{meta(&appsv1.Deployment{}), meta(&corev1.Service{}), meta(&corev1.ConfigMap{})}
}

// edit does one thing to one object, and waits until what the chart sets is as it was.
func (s *storm) edit(ctx context.Context) error {
	addon := s.addons[s.random.IntN(len(s.addons))]
	obj := s.objects(addon)[s.random.IntN(3)]
	name := fmt.Sprintf("%T/%s", obj, addon)
	if err := s.s.Get(ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
		return err
	}
	uid, began := obj.GetUID(), time.Now()
	switch s.random.IntN(5) {
	case 0:
		delete(s.foreign, name)
		if err := s.s.Delete(ctx, obj); err != nil {
			return err
		}
		return s.until(ctx, obj, began, func() bool { return obj.GetUID() != uid && obj.GetDeletionTimestamp() == nil })
	case 1:
		value := fmt.Sprint(s.random.Int32())
		s.foreign[name] = value
		return s.patch(ctx, obj, fmt.Sprintf(`{"metadata":{"annotations":{"people.example/note":%q}}}`, value))
	case 2:
		if err := s.patch(ctx, obj, fmt.Sprintf(`{"metadata":{"labels":{%q:"mine"}}}`, addonsv1.AddonNamespaceLabel)); err != nil {
			return err
		}
	case 3:
		if err := s.patch(ctx, obj, fmt.Sprintf(`{"metadata":{"labels":{%q:null}}}`, addonsv1.AddonLabel)); err != nil {
			return err
		}
	default:
		patch := map[string]string{
			"*v1.Deployment": `{"metadata":{"labels":{"tier":"back"}},"spec":{"replicas":2,"minReadySeconds":1}}`,
			"*v1.Service":    `{"spec":{"selector":{"app":"mine"}}}`,
			"*v1.ConfigMap":  `{"data":{"text":"mine"}}`,
		}[fmt.Sprintf("%T", obj)]
		if err := s.patch(ctx, obj, patch); err != nil {
			return err
		}
	}
	return s.until(ctx, obj, began, func() bool { return true })
}

func (s *storm) patch(ctx context.Context, obj client.Object, patch string) error {
	return s.s.Patch(ctx, obj, client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner("kubectl-edit"))
}

// until waits until an object is as the chart says.
func (s *storm) until(ctx context.Context, obj client.Object, began time.Time, more func() bool) error {
	for {
		err := s.s.Get(ctx, client.ObjectKeyFromObject(obj), obj)
		if err == nil && more() && s.isRight(obj) {
			s.took = append(s.took, time.Since(began))
			return nil
		}
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		if time.Since(began) > patience {
			return fmt.Errorf("%T %s/%s isn't as it was after %s", obj, obj.GetNamespace(), obj.GetName(), patience)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func (s *storm) isRight(obj client.Object) bool {
	if obj.GetLabels()[addonsv1.AddonLabel] != obj.GetName() || obj.GetLabels()[addonsv1.AddonNamespaceLabel] != s.namespace {
		return false
	}
	switch obj := obj.(type) {
	case *appsv1.Deployment:
		return obj.Labels["tier"] == "front" && *obj.Spec.Replicas == 1
	case *corev1.Service:
		return obj.Spec.Selector["app"] == obj.Name
	case *corev1.ConfigMap:
		return obj.Data["text"] == "as the chart says"
	}
	return false
}

// lost are the annotations of people that are gone, and Deployments that were rolled out again.
func (s *storm) lost(t *testing.T) []string {
	t.Helper()
	var lost []string
	for _, addon := range s.addons {
		for _, obj := range s.objects(addon) {
			must.Succeed(t, s.s.Get(t.Context(), client.ObjectKeyFromObject(obj), obj))
			name := fmt.Sprintf("%T/%s", obj, addon)
			if want, is := s.foreign[name], obj.GetAnnotations()["people.example/note"]; want != is {
				lost = append(lost, fmt.Sprintf("%s has the note %q, not %q", name, is, want))
			}
		}
	}
	sets := &appsv1.ReplicaSetList{}
	must.Succeed(t, s.s.List(t.Context(), sets, client.InNamespace(s.namespace)))
	revisions := map[string]int{}
	for _, set := range sets.Items {
		if set.DeletionTimestamp == nil {
			revisions[set.Labels["app"]]++
		}
	}
	for addon, n := range revisions {
		if n > 1 {
			lost = append(lost, fmt.Sprintf("Deployment %s has %d ReplicaSets: its pods were made again", addon, n))
		}
	}
	return lost
}
