// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"cmp"
	"context"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// addon is one add-on that the cluster is to have.
type addon struct {
	addonsv1.Addon

	stack          string
	behind         bool                   // the stack is; see assigned
	bundle         *addonsv1.BundleSource // of the stack, nil if it has none
	deletionPolicy addonsv1.DeletionPolicy
}

// release names the add-on's Helm release.
func (a *addon) release() deliver.Release {
	return deliver.Release{Namespace: cmp.Or(a.Namespace, addonsv1.DefaultAddonNamespace), Name: a.Name}
}

// wanted reads the add-ons of all stacks that the cluster is to run, each one
// after those it depends on.
func (p *pass) wanted(ctx context.Context) ([]addon, error) {
	stacks, err := p.assigned(ctx)
	if err != nil {
		return nil, err
	}
	var wanted []addon
	for _, from := range stacks {
		for _, a := range stack.InOrder(from.spec.Addons) {
			wanted = append(wanted, addon{
				Addon:          a,
				stack:          from.stack,
				behind:         from.behind,
				bundle:         from.spec.Source,
				deletionPolicy: cmp.Or(from.spec.DeletionPolicy, addonsv1.DeletionPolicyDelete),
			})
		}
	}
	return wanted, nil
}

// claims decides which stack has each release: the one that installed it, or
// else the first in the list. The others are told. A stack that isn't decided, and
// keeps what it installed, may want it still.
func claims(wanted []addon, installed map[deliver.Release]deliver.Summary, stacks map[string]undecided) map[deliver.Release]string {
	holder := map[deliver.Release]string{}
	for i := range wanted {
		release := wanted[i].release()
		_, taken := holder[release]
		record, ok := installed[release]
		switch {
		case ok && stacks[record.Stack].keeps:
			holder[release] = record.Stack
		case !taken || ok && record.Stack == wanted[i].stack:
			holder[release] = wanted[i].stack
		}
	}
	return holder
}
