// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-chandler/chandler/test/long"
)

// stride is the distance between the writes at which the manager dies in a
// normal run.
const stride = 5

// TestCrash kills the manager at the k-th write to the workload cluster, or to the
// management cluster. It does so before or after the server has answered the write, and
// compares what comes of it with an undisturbed run.
func TestCrash(t *testing.T) {
	long.Test(t)
	t.Parallel()
	undisturbed := newLifeCycle(t, "undisturbed", nil)
	undisturbed.run(crashPoint{})
	undisturbed.Expect(slices.Sorted(maps.Keys(undisturbed.content["install"]))).To(ContainElements(
		ContainSubstring("CustomResourceDefinition.apiextensions.k8s.io /things."), ContainSubstring("CustomResourceDefinition.apiextensions.k8s.io /gadgets."),
		ContainSubstring("Thing."), ContainSubstring("Deployment.apps"), ContainSubstring("/dependent"),
		ContainSubstring("/only-in-one"), ContainSubstring("sh.helm.release.v1.crashing.v1")), "else the comparison would say little")
	undisturbed.Expect(slices.Sorted(maps.Keys(undisturbed.content["upgrade"]))).NotTo(ContainElement(ContainSubstring("/only-in-one")))
	undisturbed.Expect(slices.Sorted(maps.Keys(undisturbed.content["removal"]))).To(HaveEach(Or(HavePrefix("Job.batch "), ContainSubstring(" /gadgets."), Equal("Namespace. /NAMESPACE"))),
		"but for the Jobs of hooks, what is in crds/, and the namespace, which Helm leaves, too, nothing stays")
	writes, kept := 0, 0
	for _, step := range steps {
		t.Logf("%s takes %d writes to the workload cluster, %d to the management cluster", step, undisturbed.writes[step], undisturbed.kept[step])
		writes, kept = max(writes, undisturbed.writes[step]), max(kept, undisturbed.kept[step])
	}
	for _, at := range append(crashPoints(writes, false), crashPoints(kept, true)...) {
		t.Run(at.String(), func(t *testing.T) {
			t.Parallel()
			l := newLifeCycle(t, fmt.Sprintf("crash-%d", at.write), crash)
			l.run(at)
			l.expectSame(undisturbed, at)
		})
	}
}

// crash kills the manager, and starts another one.
func crash(l *lifeCycle, at crashPoint) func() {
	p := l.proxy
	if at.management {
		p = l.hub
	}
	died, victim := make(chan struct{}), l.manager
	p.atWrite(at.write, at.answered, func() { victim.Kill(); close(died) })
	return func() {
		if l.untilSprung(p, died) {
			l.startManager()
		}
	}
}

// crashPoint is where each step of a life cycle is disturbed.
type crashPoint struct {
	write      int // from 1; 0 for nowhere
	answered   bool
	management bool // a write to the management cluster
}

// String implements fmt.Stringer.
func (p crashPoint) String() string {
	when, where := "before", "workload"
	if p.answered {
		when = "after"
	}
	if p.management {
		where = "management"
	}
	return fmt.Sprintf("%s %s write %d", when, where, p.write)
}

// crashPoints returns points that are spread over the writes of a step.
func crashPoints(total int, management bool) []crashPoint {
	var points []crashPoint
	if os.Getenv("CHANDLER_E2E_EVERY_WRITE") != "" {
		for k := 1; k <= total; k++ {
			points = append(points, crashPoint{k, false, management}, crashPoint{k, true, management})
		}
		return points
	}
	for k := 1; k <= total; k += stride {
		points = append(points, crashPoint{k, k%2 == 0, management})
	}
	return points
}

// crashingChart has what an installation has to get right in several steps: a
// CRD with an object of it, ConfigMaps of which some come and go, a Deployment,
// and hooks. The CRD is named after the namespace, as it is for the whole cluster.
func crashingChart(generation, namespace string) chart {
	only := "only-in-" + generation
	return chart{
		// Not a template: Helm installs what is in crds/ as it is, and leaves it.
		"crds/gadgets.yaml": strings.Join([]string{
			"apiVersion: apiextensions.k8s.io/v1", "kind: CustomResourceDefinition",
			"metadata: {name: gadgets." + namespace + ".chandler.test}",
			"spec:",
			"  group: " + namespace + ".chandler.test",
			"  names: {kind: Gadget, listKind: GadgetList, plural: gadgets, singular: gadget}",
			"  scope: Namespaced",
			"  versions:",
			"  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}",
		}, "\n"),
		"templates/crd.yaml": strings.Join([]string{
			"apiVersion: apiextensions.k8s.io/v1", "kind: CustomResourceDefinition",
			"metadata: {name: 'things.{{ .Release.Namespace }}.chandler.test'}",
			"spec:",
			"  group: '{{ .Release.Namespace }}.chandler.test'",
			"  names: {kind: Thing, listKind: ThingList, plural: things, singular: thing}",
			"  scope: Namespaced",
			"  versions:",
			"  - name: v1",
			"    served: true",
			"    storage: true",
			"    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}",
		}, "\n"),
		"templates/thing.yaml": strings.Join([]string{
			"apiVersion: '{{ .Release.Namespace }}.chandler.test/v1'", "kind: Thing",
			"metadata: {name: thing}", "spec: {generation: " + generation + "}",
		}, "\n"),
		"templates/both.yaml":         configMap("in-both", generation),
		"templates/same.yaml":         configMap("always-the-same", "same"),
		"templates/only.yaml":         configMap(only, generation),
		"templates/deploy.yaml":       deployment("web", generation),
		"templates/pre-install.yaml":  hookJob("pre-install"),
		"templates/post-install.yaml": hookJob("post-install"),
		"templates/pre-upgrade.yaml":  hookJob("pre-upgrade"),
		"templates/post-upgrade.yaml": strings.Replace(hookJob("post-upgrade"), "annotations: {", "annotations: {helm.sh/hook-delete-policy: hook-succeeded, ", 1),
		"templates/post-delete.yaml":  hookJob("post-delete"),
	}
}

func deployment(name, image string, podAnnotations ...string) string {
	return strings.Join([]string{
		"apiVersion: apps/v1", "kind: Deployment", "metadata: {name: " + quoted(name) + "}",
		"spec:",
		"  replicas: 1",
		"  selector: {matchLabels: {app: " + quoted(name) + "}}",
		"  template:",
		"    metadata: {labels: {app: " + quoted(name) + "}, annotations: {" + strings.Join(podAnnotations, ", ") + "}}",
		"    spec: {terminationGracePeriodSeconds: 0, containers: [{name: main, image: 'example.test/" + name + ":" + image + "'}]}",
	}, "\n")
}

// hookJob is a Job of a hook. It stays when it is done, so that its runs can be
// counted; kwok lets its pod complete.
func hookJob(hook string, podAnnotations ...string) string {
	return strings.Join([]string{
		"apiVersion: batch/v1", "kind: Job",
		"metadata:",
		"  name: " + hook,
		"  labels: {hook: " + hook + "}",
		"  annotations: {helm.sh/hook: " + hook + "}",
		"spec:",
		"  backoffLimit: 0",
		"  template:",
		"    metadata: {annotations: {" + strings.Join(podAnnotations, ", ") + "}}",
		"    spec: {restartPolicy: Never, containers: [{name: main, image: 'example.test/hook:1'}]}",
	}, "\n")
}
