// SPDX-License-Identifier: Apache-2.0

package history_test

import (
	"testing"
	"time"

	helmrelease "helm.sh/helm/v4/pkg/release/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/cluster-chandler/chandler/fleet/budget"
	"github.com/cluster-chandler/chandler/internal/deliver/history"
	"github.com/cluster-chandler/chandler/internal/deliver/memory"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/test/must"
)

// The objects of a manifest count as long as the call has them, and those that they were made of don't.
func TestObjectsOfAManifestCount(t *testing.T) {
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	of := budget.New(budget.Limits{})
	call := memory.New(t.Context(), of, clocktesting.NewFakeClock(time.Now()))
	h := &history.History{Scope: &object.Scope{Release: record.Release{Namespace: "web", Name: "web"}, Mapper: mapper}, Memory: call}
	rec := &record.Record{Helm: &helmrelease.Release{Manifest: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\ndata: {a: b}\n"}}
	objects, weight, err := h.Manifest(t.Context(), rec)
	must.Succeed(t, err)
	must.Len(t, 1, objects, "objects")
	if claimed := of.Usage().Claimed; weight == 0 || claimed != weight {
		t.Errorf("%d bytes are claimed for objects of %d", claimed, weight)
	}
	call.End()
	must.Equal(t, 0, of.Usage().Claimed, "claimed")
}
