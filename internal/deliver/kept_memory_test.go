// SPDX-License-Identifier: Apache-2.0

package deliver_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	helmrelease "helm.sh/helm/v4/pkg/release/v1"
	"helm.sh/helm/v4/pkg/storage"
	"helm.sh/helm/v4/pkg/storage/driver"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/render/job"
)

// manyObjects is a chart of which more is kept than may be.
func manyObjects(version string, hooks ...string) chart {
	c := chart{version: version}
	for i := range 60 {
		c.manifest += configMap(fmt.Sprintf("c%02d", i), version+strings.Repeat("x", 3000))
	}
	for _, event := range hooks {
		c.hooks = append(c.hooks, job.Hook{
			Name: event, Kind: "ConfigMap", Path: "demo/" + event, Manifest: configMap(event, version), Events: []string{event},
		})
	}
	return c
}

// TestWhatIsNotReadyTakesLittleMemory has objects and records dropped while they are waited for. They are read again,
// and nothing else is written or asked for.
func TestWhatIsNotReadyTakesLittleMemory(t *testing.T) {
	for title, tc := range map[string]struct{ room, reads int }{
		"there is room":    {reads: 0},
		"there is no room": {room: 1, reads: 1},
	} {
		t.Run(title, func(t *testing.T) {
			e := newEnv(t)
			wakeup := e.wakeup
			e.d.Deliverer = deliver.New(deliver.Options{Clock: e.clock, MaxKept: tc.room, Notify: func(string) {
				select {
				case wakeup <- struct{}{}:
				default:
				}
			}})
			ns := e.namespace()
			never := func(want deliver.Desired) deliver.Desired {
				want.Readiness = []addonsv1.ReadinessCheck{{APIVersion: "v1", Kind: "ConfigMap", Expression: "self.data.key == 'never'"}}
				return want
			}
			ensure := func(want deliver.Desired, requests, writes int, why string) deliver.Outcome {
				t.Helper()
				e.meter.reset()
				o := e.ensure(want)
				r, w := e.meter.total()
				e.Expect([]int{r, w}).To(Equal([]int{requests, writes}), why)
				return o
			}
			manifest := func() string {
				found, err := storage.Init(driver.NewSecrets(e.clientset().CoreV1().Secrets(ns))).Last("demo")
				e.Expect(err).NotTo(HaveOccurred())
				return found.(*helmrelease.Release).Manifest
			}
			chart := manyObjects("1", "post-install", "pre-delete")
			want := never(e.want(ns, chart))

			o := e.ensure(want)
			e.Expect(o.Reason).To(Equal(deliver.ReasonWaitingForObjects), o.Message)
			time.Sleep(time.Second) // the watch begins
			o = ensure(want, tc.reads, 0, "nothing has changed")
			e.Expect([]int32{o.Total, o.Ready}).To(Equal([]int32{60, 0}), o.Message)
			e.clock.step(15 * time.Second)
			ensure(want, 2+tc.reads, 1, "the records are listed, and that all was applied is noted")
			e.Expect(manifest()).To(Equal(chart.manifest))

			chart = manyObjects("1.1", "post-install", "pre-delete")
			e.install(e.want(ns, chart))
			e.Expect(manifest()).To(Equal(chart.manifest))
			e.Expect(e.get("v1", "ConfigMap", ns, "post-install")).NotTo(BeNil(), "the hook ran")
			next := manyObjects("2")
			o = e.ensure(never(e.want(ns, next)))
			e.Expect(o.Reason).To(Equal(deliver.ReasonWaitingForObjects), o.Message)
			late := never(e.want(ns, next))
			late.OnFailure, late.ProgressDeadline = addonsv1.FailurePolicyRollBack, time.Nanosecond
			e.clock.step(time.Minute)
			e.Expect(e.reach(late, deliver.ReasonRolledBack).Revision).To(BeEquivalentTo(4))
			e.Expect(manifest()).To(Equal(chart.manifest))
			e.Expect(e.remove(want.Release).Gone).To(BeTrue())
			e.Expect(e.get("v1", "ConfigMap", ns, "c00")).To(BeNil())
			e.Expect(e.get("v1", "ConfigMap", ns, "pre-delete")).NotTo(BeNil(), "the hook ran")
		})
	}
}
