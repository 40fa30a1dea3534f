// SPDX-License-Identifier: Apache-2.0

package deliver_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
)

// checksummed is a release whose pods have an annotation that stands for the data of its Secret and its ConfigMap.
func checksummed(secret, config, checksum, label string) string {
	return fmt.Sprintf(`---
apiVersion: v1
kind: Secret
metadata: {name: password}
%s
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {a: %q}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: app}
spec:
  selector: {matchLabels: {app: app}}
  template:
    metadata: {labels: {app: app%s}, annotations: {checksum/all: %q, fixed: x}}
    spec: {containers: [{name: a, image: example.org/a, resources: {requests: {cpu: "1000m"}}}]}
`, secret, config, label, checksum)
}

// TestPodsStayWhereTheirDataDoes takes over releases whose chart writes the same data in another form. The checksum that it
// makes of it is another one, and the pods stay until the add-on changes.
func TestPodsStayWhereTheirDataDoes(t *testing.T) {
	t.Parallel()
	const first, again = "data: {p: 'YWJj'}", "stringData: {p: abc}"
	for name, c := range map[string]struct {
		now, version string
		values       map[string]any
		change       func(e *env, ns string)
		restarts     bool
	}{
		"another form of the same data": {now: checksummed(again, "1", "two", "")},
		"other keys are of others": {now: checksummed(again, "1", "two", ""), change: func(e *env, ns string) {
			e.apply("other", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: "+ns+"}\ndata: {b: '2'}\n")
		}},
		"rollout restart": {now: checksummed(again, "1", "two", ""), change: func(e *env, ns string) {
			e.apply("kubectl", "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: app, namespace: "+ns+"}\nspec: {template: {metadata: {annotations: {kubectl.kubernetes.io/restartedAt: now}}}}\n")
		}},
		"another annotation": {now: strings.Replace(checksummed(again, "1", "two", ""), "fixed: x", "fixed: x, more: x", 1)},
		"an annotation less": {now: strings.Replace(checksummed(again, "1", "two", ""), ", fixed: x", "", 1)},
		"an annotation that was taken out": {now: checksummed(again, "1", "two", ""), change: func(e *env, ns string) {
			e.edit("kubectl", e.get("apps/v1", "Deployment", ns, "app"), `{"spec":{"template":{"metadata":{"annotations":{"fixed":null}}}}}`)
		}},
		"another password": {now: checksummed("stringData: {p: abd}", "1", "two", ""), restarts: true},
		"another setting":  {now: checksummed(again, "2", "two", ""), restarts: true},
		"a key less":       {now: checksummed("", "1", "two", ""), restarts: true},
		"the Secret goes":  {now: strings.SplitN(checksummed("", "1", "two", ""), "---", 3)[2], restarts: true},
		"another label":    {now: checksummed(again, "1", "two", ", more: x"), restarts: true},
		"other values":     {now: checksummed(again, "1", "two", ""), values: map[string]any{"a": "b"}, restarts: true},
		"another version":  {now: checksummed(again, "1", "two", ""), version: "2.0.0", restarts: true},
		"a setting that was edited": {now: checksummed(again, "1", "two", ""), restarts: true, change: func(e *env, ns string) {
			e.apply("person", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: "+ns+"}\ndata: {a: edited}\n")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			e, ns := beside(t)
			release := deliver.Release{Namespace: ns, Name: "demo"}
			e.helmInstalls(release, ns, theirChart("1", checksummed(first, "1", "one", "")))
			if c.change != nil {
				c.change(e, ns)
			}
			template := func() any {
				all, _, err := unstructured.NestedMap(e.get("apps/v1", "Deployment", ns, "app").Object, "spec", "template")
				e.Expect(err).NotTo(HaveOccurred())
				return all
			}
			before := template()
			version := "1.0.0"
			if c.version != "" {
				version = c.version
			}
			wanted := func(version string, values map[string]any) deliver.Desired {
				ours := chart{version: version, manifest: c.now}
				want := e.want(ns, ours)
				want.Adoption = addonsv1.AdoptionPolicyAdopt
				want.Render = func(context.Context, deliver.RenderInput) (*deliver.Rendering, error) {
					made := ours.render(t)
					made.Values = values
					return made, nil
				}
				return want
			}
			want := wanted(version, c.values)
			o := e.install(want)
			if c.restarts {
				e.Expect(template()).NotTo(Equal(before))
				e.Expect(o.Message).To(BeEmpty())
				return
			}
			e.Expect(template()).To(Equal(before))
			e.Expect(o.Message).To(ContainSubstring("Deployment " + ns + "/app"))
			for _, owned := range e.get("apps/v1", "Deployment", ns, "app").GetManagedFields() {
				if owned.Manager == object.FieldManager(release) {
					e.Expect(owned.FieldsV1.GetRawString()).To(And(ContainSubstring("checksum/all"), Not(ContainSubstring("restartedAt"))), "that is of others")
				}
			}

			e.proofs.keep(release, "", nil) // as after a move to another management cluster
			e.restart()
			e.install(want)
			e.Expect(template()).To(Equal(before))
			e.Expect(e.records(ns)[release].Revision).To(Equal(2))
			_, differences, err := e.d.Repair(e.ctx, e.target, deliver.Repair{Release: release})
			e.Expect(err).NotTo(HaveOccurred())
			e.Expect(differences).To(HaveEach(HaveField("Repaired", false)), "the record has what is in the cluster")

			e.install(wanted("1.0.1", c.values))
			e.Expect(template()).NotTo(Equal(before), "the add-on changes")
		})
	}
}
