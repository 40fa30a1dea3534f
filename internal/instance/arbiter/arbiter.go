// SPDX-License-Identifier: Apache-2.0

// Package arbiter decides which instance gets its scope, so that no two that
// run at the same time look after one object. It runs in the process that serves
// the webhooks. Why the protocol is safe: docs/design/instances.md.
//
// An Observer knows who is alive, judge holds the rules, and an Arbiter puts
// both together for admission.
package arbiter

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/instance"
)

// Arbiter decides about ProviderInstances, by what the API server has stored
// and by who is alive.
type Arbiter struct {
	reader   client.Reader
	observer *Observer
}

// New returns an arbiter. The reader must not be a cache: the protocol needs
// consistent answers.
func New(reader client.Reader, observer *Observer) *Arbiter {
	return &Arbiter{reader: reader, observer: observer}
}

// Judge says why an object may not be stored, nil if it may. Before is nil for
// a new one.
func (a *Arbiter) Judge(ctx context.Context, before, after *addonsv1.ProviderInstance) (*instance.Refusal, error) {
	if before != nil && harmless(before, after) {
		return nil, nil
	}
	asOf := a.observer.clock.Now()
	list := &addonsv1.ProviderInstanceList{}
	if err := a.reader.List(ctx, list); err != nil {
		return nil, fmt.Errorf("listing ProviderInstances, to compare scopes: %w", err)
	}
	return judge(before, after, a.observer.Listed(list.Items, asOf)), nil
}
