// SPDX-License-Identifier: Apache-2.0

package deliver_test

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-chandler/chandler/internal/deliver"
)

// TestOtherFactsWithTheSameResult makes no revision when a cluster has other kinds, and the chart doesn't mind.
func TestOtherFactsWithTheSameResult(t *testing.T) {
	e, ns := beside(t)
	of := func(facts, value string) deliver.Desired {
		c := chart{version: "1", manifest: configMap("a", value)}
		want := e.want(ns, c)
		want.Digest = func(context.Context, string) (string, error) { return c.digest() + facts, nil }
		want.Render = func(context.Context, deliver.RenderInput) (*deliver.Rendering, error) {
			r := c.render(t)
			r.Digest, r.FactsUsed = c.digest()+facts, facts
			return r, nil
		}
		return want
	}
	e.install(of("one", "x"))
	e.Expect(e.install(of("two", "x")).Revision).To(Equal(int32(1)))
	e.Expect(e.records(ns)[of("two", "x").Release].FactsUsed).To(Equal("two"))
	e.restart()
	e.meter.reset()
	e.Expect(e.install(of("two", "x")).Revision).To(Equal(int32(1)))
	_, writes := e.meter.total()
	e.Expect(writes).To(BeZero())
	e.Expect(e.install(of("two", "y")).Revision).To(Equal(int32(2)), "other content is another revision")
}
