// SPDX-License-Identifier: Apache-2.0

package deliver_test

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/render/job"
)

// TestRemovalOfWhatCannotBeWatched looks whether objects are gone that no watch tells of.
func TestRemovalOfWhatCannotBeWatched(t *testing.T) {
	e, ns := beside(t)
	want := e.want(ns, chart{version: "1", manifest: configMap("a", "x")})
	e.install(want)
	e.meter.refuseWatch("configmaps")
	e.removed(want.Release)
	e.Expect(e.get("v1", "ConfigMap", ns, "a")).To(BeNil())
}

// TestDeadlineOfWhatCannotBeWatched has each become ready after the deadline, and no watch tell of it.
func TestDeadlineOfWhatCannotBeWatched(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		resource string
		want     func(e *env, ns string) deliver.Desired
		reason   string
		happens  func(e *env, ns string)
	}{
		"an object": {"configmaps", gated, deliver.ReasonReadinessTimeout, open},
		"a CRD whose names another one has": {"customresourcedefinitions", func(e *env, ns string) deliver.Desired {
			group := ns + ".example.com"
			e.apply("kubectl", strings.ReplaceAll(crd(group), "widgets", "gadgets"))
			e.Eventually(func() error {
				return e.target.Client.Create(e.ctx, parsed(e.t, widget(group, "probe"), ns))
			}).WithTimeout(10 * time.Second).Should(Succeed())
			return e.want(ns, chart{version: "1", manifest: crd(group)})
		}, deliver.ReasonObjectFailed, func(e *env, ns string) {
			e.delete(e.get("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "gadgets."+ns+".example.com"))
		}},
		"a hook's Job": {"jobs", func(e *env, ns string) deliver.Desired {
			return e.want(ns, chart{version: "1", hooks: []job.Hook{hook("migrate", 0, jobText("migrate", true), []string{"pre-install"})}})
		}, deliver.ReasonHookFailed, func(e *env, ns string) {
			e.edit("somebody", e.get("batch/v1", "Job", ns, "migrate"), `{"spec":{"suspend":false}}`)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			e, ns := beside(t)
			want := c.want(e, ns)
			e.meter.refuseWatch(c.resource)
			look := func() deliver.Outcome { return e.ensure(want) }
			look()
			e.Eventually(e.wakeup).WithTimeout(10*time.Second).Should(Receive(), "it can't be watched")
			e.clock.step(time.Hour)
			e.Eventually(look).WithTimeout(10 * time.Second).Should(And(HaveField("Phase", addonsv1.AddonFailed),
				HaveField("Reason", c.reason), HaveField("RetryAfter", 30*time.Second)))
			c.happens(e, ns)
			e.Eventually(look).WithTimeout(20 * time.Second).Should(HaveField("Phase", addonsv1.AddonReady))
		})
	}
}

// TestJobThatFailedIsNotRunAgain although it can't be watched, or another object can't.
func TestJobThatFailedIsNotRunAgain(t *testing.T) {
	t.Parallel()
	for _, resource := range []string{"jobs", "configmaps"} {
		t.Run(resource, func(t *testing.T) {
			e, ns := beside(t)
			e.meter.refuseWatch(resource)
			want := e.want(ns, chart{version: "1", manifest: configMap("a", "x") + plainJob("", stuck)})
			want.Readiness = gated(e, ns).Readiness
			look := func() deliver.Outcome { return e.ensure(want) }
			look()
			e.Eventually(e.wakeup).WithTimeout(10*time.Second).Should(Receive(), "one of them can't be watched")
			for range 2 {
				look()
			}
			if resource == "configmaps" {
				e.Expect(e.meter.made("migrate")).To(Equal(1), "its watch tells")
			}
			e.edit("somebody", e.get("batch/v1", "Job", ns, "migrate"), `{"spec":{"activeDeadlineSeconds":0}}`)
			e.Eventually(look).WithTimeout(20 * time.Second).Should(HaveField("Reason", deliver.ReasonObjectFailed))
			e.Expect(e.target.Client.Delete(e.ctx, e.get("batch/v1", "Job", ns, "migrate"), client.PropagationPolicy(metav1.DeletePropagationBackground))).To(Succeed())
			e.Eventually(func() any { return e.get("batch/v1", "Job", ns, "migrate") }).WithTimeout(20 * time.Second).Should(BeNil())
			for range 2 {
				e.Expect(look().Reason).To(Equal(deliver.ReasonObjectFailed))
			}
			e.Expect(e.get("batch/v1", "Job", ns, "migrate")).To(BeNil())
		})
	}
}
