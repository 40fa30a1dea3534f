// SPDX-License-Identifier: Apache-2.0

package observed

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// Follow calls changed at once, and after AddonStacks or ClusterAddons of a namespace, "" for all, changed. Changes within a pause
// are one. It returns nil once the context has ended, or the error of changed, or of a watch that the user may not have.
func Follow(ctx context.Context, c client.WithWatch, namespace string, pause time.Duration, changed func() error) error {
	following, end := context.WithCancelCause(ctx)
	defer end(nil)
	news := make(chan struct{}, 1)
	for _, kind := range []string{"AddonStackList", "ClusterAddonList"} {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(addonsv1.GroupVersion.WithKind(kind))
		go func() { end(followKind(following, c, list, namespace, pause, news)) }()
	}
	for {
		if err := changed(); err != nil {
			return err
		}
		select {
		case <-time.After(pause):
		case <-following.Done():
		}
		select {
		case <-news:
		case <-following.Done():
			if ctx.Err() != nil {
				return nil // the user ended it
			}
			return context.Cause(following)
		}
	}
}

// followKind tells of news of one kind. A watch that the server ends is begun again, which may have missed some.
func followKind(ctx context.Context, c client.WithWatch, list *metav1.PartialObjectMetadataList, namespace string, pause time.Duration, news chan<- struct{}) error {
	tell := func() {
		select {
		case news <- struct{}{}:
		default:
		}
	}
	for begun := false; ; begun = true {
		if err := c.List(ctx, list, client.InNamespace(namespace), client.Limit(1)); err != nil {
			return fmt.Errorf("following changes: %w", err)
		}
		from := &metav1.ListOptions{ResourceVersion: list.ResourceVersion}
		w, err := c.Watch(ctx, list, client.InNamespace(namespace), &client.ListOptions{Raw: from})
		if err != nil {
			return fmt.Errorf("following changes: %w", err)
		}
		if begun {
			tell()
		}
		for event := range w.ResultChan() {
			if event.Type == watch.Error {
				break
			}
			tell()
		}
		w.Stop()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}
