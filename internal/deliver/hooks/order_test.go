// SPDX-License-Identifier: Apache-2.0

package hooks_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	helmrelease "helm.sh/helm/v4/pkg/release/v1"

	"github.com/cluster-chandler/chandler/internal/deliver/hooks"
)

func TestHookOrder(t *testing.T) {
	h := func(kind, name string, weight int, events ...helmrelease.HookEvent) *helmrelease.Hook {
		return &helmrelease.Hook{Kind: kind, Name: name, Weight: weight, Events: events}
	}
	got := hooks.For([]*helmrelease.Hook{
		h("Job", "z", -5, "pre-install"), h("Job", "b", 0, "pre-install", "pre-upgrade"), h("Job", "a", 0, "pre-install"),
		h("ServiceAccount", "b", 0, "pre-install"), h("Job", "other", 0, "post-install"), h("Job", "last", 10, "pre-install"),
	}, helmrelease.HookPreInstall)
	var names []string
	for _, hook := range got {
		names = append(names, hook.Kind+" "+hook.Name)
	}
	if d := cmp.Diff([]string{"Job z", "Job a", "ServiceAccount b", "Job b", "Job last"}, names); d != "" {
		t.Error(d)
	}
}
