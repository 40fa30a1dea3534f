// SPDX-License-Identifier: Apache-2.0

package deliver_test

import (
	"context"
	"errors"
	"testing"

	. "github.com/onsi/gomega"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver"
)

// withInputs is an add-on of a chart that was rendered with pinned values.
func (e *env) withInputs(ns, inputs string, c chart) deliver.Desired {
	want := e.want(ns, c)
	want.Inputs = inputs
	return want
}

// recorded is an add-on that is to be as it was with pinned values: they are gone, so nothing can be rendered.
func (e *env) recorded(ns, inputs string) deliver.Desired {
	want := e.withInputs(ns, inputs, chart{})
	want.Recorded = true
	want.Digest = func(context.Context, string) (string, error) { return "", errors.New("the inputs are gone") }
	want.Render = func(context.Context, deliver.RenderInput) (*deliver.Rendering, error) {
		return nil, errors.New("the inputs are gone")
	}
	return want
}

// TestRestore goes back over two revisions to one of which the records alone know what it was made of. An interruption
// at the first write changes nothing, and neither does a lost proof of that write.
func TestRestore(t *testing.T) {
	e, ns := beside(t)
	e.install(e.withInputs(ns, "one", chart{version: "1", manifest: configMap("kept", "1") + configMap("old", "1")}))
	e.install(e.withInputs(ns, "two", chart{version: "2", manifest: configMap("kept", "2") + configMap("new", "2")}))
	failed := e.withInputs(ns, "three", chart{version: "3", manifest: configMap("kept", "3") + refused})
	o := e.ensureUntil(failed, func(o deliver.Outcome) bool { return o.Phase == addonsv1.AddonFailed })
	e.Expect(o.Revision).To(BeEquivalentTo(3))

	e.restart()
	e.meter.mu.Lock()
	e.meter.failFrom, e.meter.done = e.meter.writes+1, true // its record is made, and nobody hears of it
	e.meter.mu.Unlock()
	_, err := e.d.Ensure(e.ctx, e.target, e.recorded(ns, "one"))
	e.Expect(err).To(HaveOccurred())
	e.restart()
	o = e.install(e.recorded(ns, "one"))
	e.Expect(o.Version).To(Equal("1"))
	e.Expect(o.Revision).To(BeEquivalentTo(4))
	e.Expect(e.get("v1", "ConfigMap", ns, "kept").Object["data"]).To(HaveKeyWithValue("key", "1"))
	e.Expect(e.get("v1", "ConfigMap", ns, "old")).NotTo(BeNil())
	e.Expect(e.get("v1", "ConfigMap", ns, "new")).To(BeNil())
	e.Expect(e.releaseStatuses(ns)).To(Equal("1 superseded, 2 superseded, 3 failed, 4 deployed"))

	e.meter.reset()
	e.install(e.recorded(ns, "one"))
	_, writes := e.meter.total()
	e.Expect(writes).To(BeZero(), "it is as it was")
	e.install(e.withInputs(ns, "one", chart{version: "1", manifest: configMap("kept", "1") + configMap("old", "1")}))
	_, writes = e.meter.total()
	e.Expect(writes).To(BeZero(), "the same inputs are there again")

	o = e.ensure(e.recorded(ns, "four"))
	e.Expect(o.Reason).To(Equal(deliver.ReasonInputReplaced))
	e.Expect(o.Phase).To(Equal(addonsv1.AddonPending))
	e.Expect(o.RetryAfter).To(BeZero(), "an event tells when it is otherwise")
	_, writes = e.meter.total()
	e.Expect(writes).To(BeZero(), "what no record has can't be made")
}
