// SPDX-License-Identifier: Apache-2.0

package deliver_test

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/render/job"
)

// TestPruneComesLast keeps what the new revision doesn't have until its post hooks and its
// postcondition are through.
func TestPruneComesLast(t *testing.T) {
	e, ns := beside(t)
	e.install(e.want(ns, chart{version: "1", manifest: configMap("old", "x")}))
	next := e.want(ns, chart{version: "2", manifest: configMap("new", "x"),
		hooks: []job.Hook{hook("after", 0, jobText("after", true), []string{"post-upgrade"})}})
	holds := false
	next.Postcondition = func(context.Context) (string, time.Duration, error) {
		if holds {
			return "", 0, nil
		}
		return "the test", time.Minute, nil
	}
	o := e.ensure(next)
	e.Expect(o.Reason).To(Equal(deliver.ReasonRunningHook), o.Message)
	e.Expect(e.get("v1", "ConfigMap", ns, "old")).NotTo(BeNil())

	resume := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"suspend":false}}`))
	e.Expect(e.target.Client.Patch(e.ctx, e.get("batch/v1", "Job", ns, "after"), resume)).To(Succeed())
	o = e.reach(next, deliver.ReasonWaitingForPostcondition)
	e.Expect(o.Applied).To(BeTrue())
	e.Expect(e.get("v1", "ConfigMap", ns, "old")).NotTo(BeNil())

	holds = true
	e.install(next)
	e.Expect(e.get("v1", "ConfigMap", ns, "old")).To(BeNil())
}
