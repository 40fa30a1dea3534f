// SPDX-License-Identifier: Apache-2.0

package actions

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// move does the same as "clusterctl move". It pauses Clusters, and makes all objects on the other hub, owners first and
// without their status. Then it deletes them where they were, and unpauses the Clusters.
func (f *fleet) move() {
	f.t.Helper()
	from := f.hub()
	f.active = 1 - f.active
	to := f.hub()
	for _, o := range f.listAll(from) {
		if cluster, is := o.(*clusterv1.Cluster); is {
			f.patch(from, cluster, `{"spec":{"paused":true}}`)
		}
	}
	objects, uids := f.listAll(from), map[types.UID]types.UID{}
	var moved []client.Object
	for _, o := range objects {
		if _, is := o.(*appsv1.ControllerRevision); is {
			continue // they are made again
		}
		n := bare(o)
		var owners []metav1.OwnerReference
		for _, owner := range n.GetOwnerReferences() {
			if uid, is := uids[owner.UID]; is {
				owner.UID = uid
				owners = append(owners, owner)
			}
		}
		n.SetOwnerReferences(owners)
		f.create(to, n)
		uids[o.GetUID()] = n.GetUID()
		moved = append(moved, o)
	}
	for i := len(moved) - 1; i >= 0; i-- {
		f.patch(from, moved[i], `{"metadata":{"annotations":{"`+clusterctlv1.DeleteForMoveAnnotation+`":""},"finalizers":null}}`)
		f.remove(from, moved[i], &client.DeleteOptions{GracePeriodSeconds: ptr.To(int64(0))})
	}
	for c := range f.workloads {
		if f.now().clusters[c].exists {
			if !f.now().clusters[c].paused {
				f.patch(to, &clusterv1.Cluster{ObjectMeta: f.named(clusterName(c))}, `{"spec":{"paused":null}}`)
			}
			f.reportProvisioned(to, c)
		}
	}
}

func (f *fleet) patch(s interface {
	client.Writer
	Name() string
}, o client.Object, text string,
) {
	f.t.Helper()
	if err := s.Patch(f.ctx(), o.DeepCopyObject().(client.Object), client.RawPatch(types.MergePatchType, []byte(text))); client.IgnoreNotFound(err) != nil {
		f.t.Fatalf("patching %T %s on %s: %v", o, o.GetName(), s.Name(), err)
	}
}

// moveNow moves the namespace, with or without managers.
func (f *fleet) moveNow() {
	f.t.Helper()
	runs := f.managers[f.active] != nil
	if f.random.IntN(2) == 0 {
		f.kill(f.active)
	}
	if f.managers[1-f.active] == nil && runs && f.random.IntN(2) == 0 {
		f.start(1 - f.active)
	}
	f.change(func(*model) {}, f.move)
	f.remade()
	if f.managers[f.active] == nil && runs {
		time.Sleep(time.Duration(f.random.IntN(1000)) * time.Millisecond)
		f.start(f.active)
	}
}
