// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/must"
)

// restores is the number of orders that TestRestore tries, in which the management
// cluster comes back. CHANDLER_RESTORES is for longer runs, and CHANDLER_RANDOM_SEED
// repeats one.
const restores = 5

// backup is what a tool keeps of the management cluster.
type backup struct {
	objects []client.Object
	// statuses of ClusterAddons and stacks are restored, too.
	statuses bool
}

// TestRestore loses all of the tenant's objects on the management cluster, and restores
// them in random orders and moments, with the manager running from a random one on.
func TestRestore(t *testing.T) {
	long.Test(t)
	t.Parallel()
	rounds := environmentNumber(t, "CHANDLER_RESTORES", restores)
	seed := environmentNumber(t, "CHANDLER_RANDOM_SEED", uint64(time.Now().UnixNano()))
	t.Logf("CHANDLER_RANDOM_SEED=%d", seed)
	random := rand.New(rand.NewPCG(seed, 0))

	tn := newTenant(t)
	s := workloadServer(t, 1)
	tn.create(tn.secret("values", map[string]string{"values.yaml": "text: from the Secret"}))
	withValuesFrom := valuesFromSecrets("values")
	tn.makeCluster("prod", s, nil)
	tn.startManager()
	tn.makeStack("base", nil, tn.small("net"), tn.small("storage", withValuesFrom, after("net")))
	tn.makeStack("platform", nil, tn.small("database"))
	tn.awaitReady("base", "it is installed")
	tn.awaitReady("platform", "it is installed")
	tn.settle()
	addons := []string{"net", "storage", "database"}

	for round := range rounds {
		tn.stopManager()
		b := tn.backUp(random.IntN(2) == 0)
		tn.loseAll(b)
		deletions := tn.watchDeletions(s)
		starts := random.IntN(len(b.objects) + 1)
		random.Shuffle(len(b.objects), func(i, k int) { b.objects[i], b.objects[k] = b.objects[k], b.objects[i] })
		order := ""
		for i, obj := range b.objects {
			if i == starts {
				tn.startManager()
				order += " [manager]"
			}
			order += fmt.Sprintf(" %T/%s", obj, obj.GetName())
			tn.restore(obj, b.statuses)
			<-time.After(time.Duration(random.IntN(400)) * time.Millisecond) // a backup tool takes its time
		}
		if starts == len(b.objects) {
			tn.startManager()
		}
		t.Logf("round %d, statuses %t:%s", round, b.statuses, order)
		tn.awaitReady("base", "all is back")
		tn.awaitReady("platform", "all is back")
		tn.awaitCluster("prod", "all is back", ready(addons...))
		tn.settle()
		tn.Expect(deletions()).To(BeEmpty(), "a restored management cluster removes nothing")
		for _, addon := range addons {
			tn.Expect(s.release(t, tn.namespace, addon)).To(Equal(releaseState{1, "deployed"}), "and installs nothing again")
		}
	}
}

// backUp reads what is to be restored.
func (tn *tenant) backUp(statuses bool) backup {
	tn.t.Helper()
	b := backup{statuses: statuses}
	for _, list := range []client.ObjectList{
		&clusterv1.ClusterList{}, &addonsv1.AddonStackList{}, &addonsv1.ClusterAddonList{}, &appsv1.ControllerRevisionList{}, &corev1.SecretList{},
	} {
		must.Succeed(tn.t, world.hub.List(tn.t.Context(), list, client.InNamespace(tn.namespace)))
		must.Succeed(tn.t, meta.EachListItem(list, func(obj runtime.Object) error {
			b.objects = append(b.objects, obj.(client.Object))
			return nil
		}))
	}
	return b
}

// loseAll deletes what was backed up.
func (tn *tenant) loseAll(b backup) {
	tn.t.Helper()
	for _, obj := range b.objects {
		tn.remove(obj.DeepCopyObject().(client.Object))
	}
}

// restore makes an object as it was. What is there already stays.
func (tn *tenant) restore(obj client.Object, statuses bool) {
	tn.t.Helper()
	restored := obj.DeepCopyObject().(client.Object)
	restored.SetResourceVersion("")
	restored.SetUID("")
	restored.SetCreationTimestamp(metav1.Time{})
	restored.SetManagedFields(nil)
	err := world.hub.Create(tn.t.Context(), restored)
	if apierrors.IsAlreadyExists(err) {
		return
	}
	must.Succeed(tn.t, err)
	_, isCluster := obj.(*clusterv1.Cluster) // its own controllers find out how it is
	_, isSecret := obj.(*corev1.Secret)
	_, isRevision := obj.(*appsv1.ControllerRevision)
	if isSecret || isRevision || !isCluster && !statuses {
		return
	}
	err = retryOnConflict(func() error {
		now := obj.DeepCopyObject().(client.Object)
		if err := world.hub.Get(tn.t.Context(), client.ObjectKeyFromObject(obj), now); err != nil {
			return err
		}
		again := obj.DeepCopyObject().(client.Object)
		again.SetResourceVersion(now.GetResourceVersion())
		again.SetUID(now.GetUID())
		return world.hub.Status().Update(tn.t.Context(), again)
	})
	must.Succeed(tn.t, err)
}
