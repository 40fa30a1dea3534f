// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// Initial tells when each object that was there at the start has been reconciled.
type Initial struct {
	mu     sync.Mutex
	listed bool
	left   sets.Set[types.NamespacedName] // of those that were there
	early  sets.Set[types.NamespacedName] // reconciled before the others were listed
	synced func()
}

// Track has the objects of a kind listed once the manager runs. Synced is called when all of them
// are done.
func (i *Initial) Track(mgr manager.Manager, list client.ObjectList, synced func()) error {
	i.synced, i.left, i.early = synced, sets.New[types.NamespacedName](), sets.New[types.NamespacedName]()
	return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		if err := mgr.GetCache().List(ctx, list); err != nil {
			return fmt.Errorf("listing what is there at the start: %w", err)
		}
		return i.list(list)
	}))
}

func (i *Initial) list(list client.ObjectList) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	err := meta.EachListItem(list, func(o runtime.Object) error {
		object, err := meta.Accessor(o)
		if key := (types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}); err == nil && !i.early.Has(key) {
			i.left.Insert(key)
		}
		return err
	})
	i.listed, i.early = true, nil
	if err == nil && i.left.Len() == 0 {
		i.synced()
	}
	return err
}

// Done says that an object was reconciled.
func (i *Initial) Done(key types.NamespacedName) {
	i.mu.Lock()
	defer i.mu.Unlock()
	switch {
	case !i.listed:
		i.early.Insert(key)
	case i.left.Has(key):
		if i.left.Delete(key); i.left.Len() == 0 {
			i.synced()
		}
	}
}
