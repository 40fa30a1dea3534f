// SPDX-License-Identifier: Apache-2.0

package deliver_test

import (
	"context"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/deliver/keep"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/deliver/preview"
	"github.com/cluster-chandler/chandler/internal/drift"
	"github.com/cluster-chandler/chandler/internal/plan"
	"github.com/cluster-chandler/chandler/test/must"
)

// TestPlanSaysWhatItCannotKnow plans objects about which the cluster can't be asked yet.
func TestPlanSaysWhatItCannotKnow(t *testing.T) {
	t.Run("a CRD with its object", func(t *testing.T) {
		e, ns := beside(t)
		group := ns + ".example.com"
		want := e.want(ns, chart{version: "1", manifest: widget(group, "one") + crd(group)})
		a := e.preview(want)
		e.Expect(planned(a)).To(Equal([]string{"Create CustomResourceDefinition widgets." + group, "NotChecked Widget one"}))
		e.Expect(changeOf(a, "one").Reason).To(Equal(object.ReasonWaitingForCRDs))
		e.Expect(a.State).To(Equal(plan.NotChecked))
		e.install(want)

		// A field that comes with the object that uses it would be refused by a dry run.
		stricter := strings.Replace(crd(group), "x-kubernetes-preserve-unknown-fields: true", "properties: {spec: {type: object, properties: {a: {type: integer}, b: {type: integer}}}}", 1)
		a = e.preview(e.want(ns, chart{version: "2", manifest: strings.Replace(widget(group, "one"), "a: 1", "b: 1", 1) + stricter}))
		e.Expect(planned(a)).To(Equal([]string{"Change CustomResourceDefinition widgets." + group, "NotChecked Widget one"}))

		// Its labels alone say nothing of the schema.
		labelled := strings.Replace(crd(group), "metadata: {", "metadata: {labels: {a: b}, ", 1)
		a = e.preview(e.want(ns, chart{version: "3", manifest: strings.Replace(widget(group, "one"), "a: 1", "a: 2", 1) + labelled}))
		e.Expect(planned(a)).To(Equal([]string{"Change CustomResourceDefinition widgets." + group, "Change Widget one"}))

		removal, err := e.d.PreviewRemoval(e.ctx, e.target, want.Release, e.proofs.of(want.Release), preview.NewComing(nil))
		must.Succeed(t, err)
		e.Expect(planned(removal)).To(Equal([]string{"Delete CustomResourceDefinition widgets." + group, "Delete Widget one"}), "its own instances are gone before it")
		e.removed(want.Release)
	})
	t.Run("a CRD of crds/", func(t *testing.T) {
		e, ns := beside(t)
		group := ns + ".example.com"
		want := e.want(ns, chart{version: "1", crds: crd(group), manifest: widget(group, "one") + configMap("a", "x")})
		a := e.preview(want)
		e.Expect(planned(a)).To(Equal([]string{"Create ConfigMap a", "Create CustomResourceDefinition widgets." + group, "NotChecked Widget one"}))
		e.install(want)
		a = e.preview(e.want(ns, chart{version: "2", crds: crd(group), manifest: widget(group, "one") + configMap("a", "y")}))
		e.Expect(planned(a)).To(Equal([]string{"Change ConfigMap a"}))
		e.removed(want.Release)
	})
	t.Run("a namespace", func(t *testing.T) {
		e, ns := beside(t)
		want := e.want(ns+"-new", configMaps("1", "one"))
		a := e.preview(want)
		e.Expect(planned(a)).To(ContainElements("Create Namespace "+ns+"-new", "NotChecked ConfigMap a"))
		e.Expect(changeOf(a, "a").Reason).To(Equal(object.ReasonNamespaceMissing))
		want.CreateNamespace = false
		a = e.preview(want)
		e.Expect([]any{a.State, a.Reason}).To(Equal([]any{plan.Refused, object.ReasonNamespaceMissing}))
		e.Expect(e.ensure(want).Reason).To(Equal(a.Reason))
	})
	t.Run("a webhook that is down", func(t *testing.T) {
		e, ns := beside(t)
		e.apply("somebody", unanswered(ns, "apiGroups: [''], apiVersions: [v1], resources: [configmaps], operations: [CREATE]",
			"namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: "+ns+"}}"))
		defer func() { e.delete(e.get("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "", ns)) }()
		a := e.preview(e.want(ns, configMaps("1", "one")))
		e.Expect(a.State).To(Equal(plan.NotChecked))
		e.Expect(changeOf(a, "a").Reason).To(Equal(object.ReasonWaitingForWebhook))
	})
	t.Run("another API server", func(t *testing.T) {
		e, ns := beside(t)
		group := ns + ".example.com"
		e.apply("somebody", "apiVersion: apiregistration.k8s.io/v1\nkind: APIService\nmetadata: {name: v1."+group+"}\n"+
			"spec: {group: "+group+", version: v1, groupPriorityMinimum: 100, versionPriority: 100, insecureSkipTLSVerify: true, service: {namespace: "+ns+", name: nobody}}\n")
		defer func() { e.delete(e.get("apiregistration.k8s.io/v1", "APIService", "", "v1."+group)) }()
		k := &keep.Keeper{Reader: e.target.Client, Scope: &object.Scope{Mapper: e.target.Client.RESTMapper()}}
		for gv, want := range map[schema.GroupVersion]bool{{Group: group, Version: "v1"}: true, {Group: "apps", Version: "v1"}: false, {Group: "gone." + group, Version: "v1"}: false} {
			is, err := k.IsAggregated(e.ctx, gv)
			must.Succeed(t, err)
			e.Expect(is).To(Equal(want), gv.String())
		}
	})
}

// TestPlanTellsOfPods says which pods restart.
func TestPlanTellsOfPods(t *testing.T) {
	e, ns := beside(t)
	e.install(e.want(ns, demo("1", "one", deployment("other"))))
	text := configMap("settings", "one") + strings.Replace(deployment("app"), "app:1}", "app:2}", 1) + strings.Replace(deployment("other"), "metadata: {name", "metadata: {labels: {a: b}, name", 1)
	a := e.preview(e.want(ns, chart{version: "2", manifest: text}))
	e.Expect(planned(a)).To(Equal([]string{"Change Deployment app", "Change Deployment other"}))
	e.Expect([]bool{changeOf(a, "app").Restarts, changeOf(a, "other").Restarts}).To(Equal([]bool{true, false}))
	e.Expect(changeOf(a, "app").Altered).To(ConsistOf(And(
		HaveField("Path", `.spec.template.spec.containers[name="c"].image`), HaveField("Old", `"example.com/app:1"`), HaveField("New", `"example.com/app:2"`))))
}

// TestPlanHoldsNothing delivers an add-on while it is planned.
func TestPlanHoldsNothing(t *testing.T) {
	e, ns := beside(t)
	want := e.want(ns, configMaps("1", "one"))
	planned, hangs, goes := want, make(chan struct{}), make(chan struct{})
	planned.Render = func(ctx context.Context, in deliver.RenderInput) (*deliver.Rendering, error) {
		close(hangs)
		<-goes
		return want.Render(ctx, in)
	}
	done := make(chan plan.Addon)
	go func() {
		a, _ := e.d.Preview(e.ctx, e.target, planned, preview.NewComing(nil))
		done <- a
	}()
	<-hangs
	e.install(want)
	close(goes)
	e.Expect((<-done).Name).To(Equal(want.Name))
}

// TestPlanCostsLittle counts the requests of a plan whose objects a watch shows.
func TestPlanCostsLittle(t *testing.T) {
	e, ns := beside(t)
	e.install(e.want(ns, configMaps("1", "one")))
	want := e.want(ns, configMaps("2", "two"))
	watched := map[deliver.ObjectKey]drift.Fields{}
	for _, name := range []string{"a", "b", "c", "d"} {
		key := deliver.ObjectKey{Kind: "ConfigMap", Namespace: ns, Name: name}
		watched[key], _ = e.seen(want.Release)(key)
	}
	want.Seen = func(key deliver.ObjectKey) (drift.Fields, bool) { return watched[key], true }
	a := e.preview(want)
	e.Expect(planned(a)).To(Equal([]string{"Change ConfigMap a"}))
	requests, _ := e.meter.total()
	e.Expect(requests).To(BeNumerically("<=", 2+3), "a read and a dry run of the one that changes, and three more")
	t.Logf("%d requests for one object of four", requests)
}
