// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// repair announces the authority to objects that come, or that someone has applied
// anew without a bundle. Each is watched by its name, which is all the rights allow.
func (s *Source) repair(ctx context.Context) error {
	changed := make(chan struct{}, 1)
	signal := func(any) {
		select {
		case changed <- struct{}{}:
		default: // there is one waiting
		}
	}
	for _, target := range s.trust.targets {
		informer := metadatainformer.NewFilteredMetadataInformer(s.metadata, target.kind.GroupVersion().WithResource(target.resource), metav1.NamespaceAll, 0, nil,
			func(o *metav1.ListOptions) {
				o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, target.name).String()
			}).Informer()
		_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    signal,
			UpdateFunc: func(_, _ any) { signal(nil) },
		})
		if err != nil {
			return fmt.Errorf("watching %s %s: %w", target.kind.Kind, target.name, err)
		}
		go informer.RunWithContext(ctx)
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		}
		err := backoff.DelayFunc().Until(ctx, true, true, func(ctx context.Context) (bool, error) {
			if err := s.trust.announceAgain(ctx); err != nil {
				log.FromContext(ctx).Error(err, "Announcing the webhooks' authority failed")
				return false, nil
			}
			return true, nil
		})
		if err != nil {
			return nil //nolint:nilerr // the context has ended
		}
	}
}

// backoff stays at its cap.
var backoff = wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: 20, Cap: time.Minute}
