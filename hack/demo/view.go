// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"slices"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// view is what Chandler says of its work, kept up to date by watches.
type view struct {
	reader  client.Reader
	changed chan struct{} // has a value after any change
}

func (d *demo) watchManagement(ctx context.Context) error {
	c, err := cache.New(d.management.Config(), cache.Options{
		Scheme:            d.client.Scheme(),
		DefaultNamespaces: map[string]cache.Config{namespace: {}},
	})
	if err != nil {
		return err
	}
	go func() { _ = c.Start(ctx) }() // a cache that didn't start doesn't get synced, which is noticed next
	d.view = &view{reader: c, changed: make(chan struct{}, 1)}
	for _, obj := range []client.Object{&addonsv1.AddonStack{}, &addonsv1.ClusterAddon{}} {
		informer, err := c.GetInformer(ctx, obj)
		if err != nil {
			return err
		}
		if _, err := informer.AddEventHandler(d.view.handler()); err != nil {
			return err
		}
	}
	return nil
}

func (v *view) handler() toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { v.notify() },
		UpdateFunc: func(any, any) { v.notify() },
		DeleteFunc: func(any) { v.notify() },
	}
}

func (v *view) notify() {
	select {
	case v.changed <- struct{}{}:
	default: // the reader will see this change with the one before
	}
}

// stack is empty if it isn't seen yet.
func (v *view) stack(ctx context.Context, name string) (*addonsv1.AddonStack, error) {
	stack := &addonsv1.AddonStack{}
	err := v.reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, stack)
	return stack, client.IgnoreNotFound(err)
}

// clusterAddons are sorted by name.
func (v *view) clusterAddons(ctx context.Context) ([]addonsv1.ClusterAddon, error) {
	list := &addonsv1.ClusterAddonList{}
	if err := v.reader.List(ctx, list); err != nil {
		return nil, err
	}
	slices.SortFunc(list.Items, func(a, b addonsv1.ClusterAddon) int { return cmp.Compare(a.Name, b.Name) })
	return list.Items, nil
}
