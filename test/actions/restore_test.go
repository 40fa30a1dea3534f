// SPDX-License-Identifier: Apache-2.0

package actions

import (
	"context"
	"fmt"
	"maps"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/apiserver"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/wait"
)

// hubBackup has all that a tool such as Velero keeps of a namespace of a management cluster: objects without their status.
type hubBackup struct {
	objects   []client.Object
	model     *model
	isMissing bool
}

// listAll reads all that a backup or a move takes along, owners first.
func (f *fleet) listAll(s *apiserver.Server) (objects []client.Object) {
	f.t.Helper()
	for _, list := range []client.ObjectList{
		&corev1.SecretList{}, &clusterv1.ClusterList{}, &addonsv1.AddonStackList{}, &appsv1.ControllerRevisionList{}, &addonsv1.ClusterAddonList{},
	} {
		must.Succeed(f.t, s.List(f.ctx(), list, client.InNamespace(f.namespace)))
		_ = meta.EachListItem(list, func(o runtime.Object) error {
			objects = append(objects, o.(client.Object))
			return nil
		})
	}
	return objects
}

// bare returns the object as it can be created once more.
func bare(o client.Object) client.Object {
	n := o.DeepCopyObject().(client.Object)
	n.SetResourceVersion("")
	n.SetUID("")
	n.SetCreationTimestamp(metav1.Time{})
	n.SetManagedFields(nil)
	return n
}

// backUpHub keeps the namespace of the active hub. A component that a cluster lost by then isn't to be removed from it
// after a restore.
func (f *fleet) backUpHub() {
	f.t.Helper()
	b := &hubBackup{objects: f.listAll(f.hub()), model: f.now().clone(), isMissing: f.isMissing}
	for x, is := range b.model.shares {
		if is.standing == lost && f.links[x.cluster] != paused && f.links[x.cluster] != stopped && !f.has(x) {
			b.model.shares[x] = state{}
		}
	}
	f.backup = b
}

// has reports whether a cluster has the ConfigMap of a component.
func (f *fleet) has(x share) bool {
	f.t.Helper()
	key := client.ObjectKey{Namespace: f.namespace, Name: componentName(x.component) + "-settings"}
	err := f.workloads[x.cluster].Get(f.ctx(), key, &corev1.ConfigMap{})
	if client.IgnoreNotFound(err) != nil {
		f.t.Fatal(err)
	}
	return err == nil
}

// restoreHub loses the namespace's objects, and makes those of the backup in a random order. Managers start amid that.
func (f *fleet) restoreHub() {
	f.t.Helper()
	runs := f.managers[f.active] != nil
	f.kill(0)
	f.kill(1)
	for _, o := range f.listAll(f.hub()) {
		f.remove(f.hub(), o)
	}
	wait.Until(f.t, time.Minute, "all is lost", func() error {
		if left := f.listAll(f.hub()); len(left) > 0 {
			return fmt.Errorf("%d objects are left", len(left))
		}
		return nil
	})
	b := f.backup
	now := b.model.clone()
	now.epoch = f.now().epoch + 1
	for k := range components {
		now.components[k].adopt = now.components[k].adopt || f.now().components[k].adopt
	}
	for x, is := range f.now().shares {
		if now.shares[x].standing == kept && is.standing == lost {
			is.excused = true // its removal may have begun
			now.shares[x] = is
		}
	}
	f.record(now, func() {
		f.isMissing = b.isMissing
		starts := f.random.IntN(len(b.objects) + 1)
		for n, i := range f.random.Perm(len(b.objects)) {
			if n == starts && runs {
				f.start(f.active)
			}
			f.restoreObject(b.objects[i])
		}
		if runs && f.managers[f.active] == nil {
			f.start(f.active)
		}
		for c := range now.clusters { // kubeconfigs are renewed
			if now.clusters[c].exists {
				f.writeKubeconfig(c)
			}
		}
		for s := range now.stacks { // what stacks left behind since is adopted
			if now.stacks[s].exists && now.components != b.model.components {
				f.writeStack(s)
			}
		}
	})
	f.remade()
	f.evens = [stacks][]time.Time{}
}

func (f *fleet) restoreObject(o client.Object) {
	f.t.Helper()
	if err := f.hub().Create(f.ctx(), bare(o)); err != nil && !apierrors.IsAlreadyExists(err) {
		f.t.Fatalf("restoring %T %s: %v", o, o.GetName(), err)
	}
	for c := range f.workloads {
		if _, is := o.(*clusterv1.Cluster); is && o.GetName() == clusterName(c) {
			f.reportProvisioned(f.hub(), c)
		}
	}
}

// clusterBackup has the etcd of a workload cluster.
type clusterBackup struct {
	restore   func(context.Context) error
	passwords map[int]*password
}

// backUpCluster keeps all of a workload cluster.
func (f *fleet) backUpCluster(c int) *clusterBackup {
	f.t.Helper()
	j := f.evaluates[c]
	j.evaluate()
	before := f.passwordsOf(c)
	restore, err := f.workloads[c].Backup(f.ctx())
	must.Succeed(f.t, err)
	j.evaluate()
	after := f.passwordsOf(c)
	maps.DeleteFunc(after, func(k int, is *password) bool { // the backup may not have it
		was, had := before[k]
		return !had || was.value != is.value
	})
	return &clusterBackup{restore: restore, passwords: after}
}

// passwordsOf returns the passwords of components on a cluster.
func (f *fleet) passwordsOf(c int) map[int]*password {
	all := map[int]*password{}
	for k := range components {
		secret := &corev1.Secret{}
		err := f.workloads[c].Get(f.ctx(), client.ObjectKey{Namespace: f.namespace, Name: componentName(k) + "-password"}, secret)
		if err == nil {
			all[k] = &password{value: string(secret.Data["password"])}
			if known := f.evaluates[c].passwords[k]; known != nil && known.value == all[k].value {
				all[k].since = known.since
			}
		}
	}
	return all
}

// restoreCluster brings a workload cluster back to an earlier state. Components that were removed since are kept.
func (f *fleet) restoreCluster(c int, b *clusterBackup) {
	f.t.Helper()
	f.evaluates[c].evaluate()
	f.change(func(m *model) {
		for k := range components {
			if x := (share{c, k}); m.shares[x].standing == lost && !f.has(x) {
				m.shares[x] = state{}
			}
		}
	}, func() {
		must.Succeed(f.t, b.restore(f.ctx()))
	})
	f.evaluates[c].passwords = map[int]*password{} // the backup may be restored once more
	for k, p := range b.passwords {
		f.evaluates[c].passwords[k] = &password{value: p.value, since: p.since, seen: time.Now()}
	}
}
