// SPDX-License-Identifier: Apache-2.0

package deliver_test

import (
	"fmt"
	"os"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/render/job"
)

// crashCharts are two revisions of an add-on with CRDs of both sorts, resources of
// them, hooks of each event, something to prune and something to wait for.
func crashCharts(ns string) (one, two chart) {
	group := ns + ".example.com"
	hooks := []job.Hook{
		hook("pre", 0, jobText("pre", false), []string{"pre-install", "pre-upgrade", "pre-delete"}, "before-hook-creation", "hook-succeeded"),
		hook("post", 0, jobText("post", false), []string{"post-install", "post-upgrade", "post-delete"}, "before-hook-creation", "hook-succeeded"),
	}
	one = chart{version: "1", crds: crd("x" + group), hooks: hooks,
		manifest: crd(group) + widget(group, "old") + widget("x"+group, "kept") + configMap("settings", "one") + deployment("app")}
	two = chart{version: "2", crds: crd("x" + group), hooks: hooks,
		manifest: crd(group) + widget(group, "new") + widget("x"+group, "kept") + configMap("settings", "two") + deployment("app")}
	return one, two
}

// TestCrash cuts the connection at writes of an installation, an upgrade and a removal in
// turn, before the write or after it, and lets a new Deliverer go on. The end has to be the
// same each time. With CHANDLER_EVERY_WRITE it does so at each one (make test-long).
func TestCrash(t *testing.T) {
	every := 5
	if os.Getenv("CHANDLER_EVERY_WRITE") != "" {
		every = 1
	}
	for i, phase := range []string{"install", "upgrade", "remove"} {
		for _, done := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/done=%t", phase, done), func(t *testing.T) {
				t.Parallel()
				expected, writes := crashAt(t, phase, 0, false)
				t.Logf("%d writes; at the end: %q", writes, expected)
				begin := 1 + i%every
				if done {
					begin = 1 + (i+every/2)%every
				}
				for k := begin; k <= writes; k += every {
					t.Run(fmt.Sprintf("write=%d", k), func(t *testing.T) {
						t.Parallel()
						got, _ := crashAt(t, phase, k, done)
						NewWithT(t).Expect(got).To(Equal(expected))
					})
				}
			})
		}
	}
}

// crashAt runs a phase with a crash at the k-th write, 0 for none, and returns
// what is in the cluster then.
func crashAt(t *testing.T, phase string, k int, done bool) ([]string, int) {
	t.Helper()
	e := newEnv(t)
	ns := e.namespace()
	one, two := crashCharts(ns)
	release := deliver.Release{Namespace: ns, Name: "demo"}
	last := e.want(ns, one)
	if phase != "install" {
		e.install(last)
	}
	e.meter.reset()
	e.meter.failFrom, e.meter.done = k, done
	act := func() {
		switch phase {
		case "install":
			e.settle(last)
		case "upgrade":
			e.settle(e.want(ns, two))
		case "remove":
			e.remove(release)
		}
	}
	act()
	_, writes := e.meter.total()
	if k > 0 {
		e.restart()
		act()
		if phase == "remove" { // nothing may be left to do
			e.Expect(e.remove(release).Gone).To(BeTrue())
		}
	}
	widgets := schema.GroupVersionKind{Group: ns + ".example.com", Version: "v1", Kind: "Widget"}
	kept := schema.GroupVersionKind{Group: "x" + ns + ".example.com", Version: "v1", Kind: "Widget"}
	return e.snapshot(ns, widgets, kept), writes
}
