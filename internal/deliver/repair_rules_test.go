// SPDX-License-Identifier: Apache-2.0

package deliver_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/drift"
)

// scaled is an add-on whose Deployment hpa has scaled to 3, and of whose label somebody made another.
type scaled struct {
	*env
	ns   string
	want deliver.Desired
}

var byHPA = drift.Rules{{Kind: "Deployment", Managers: []string{"hpa"}}}

func tiered(image string) string {
	text := strings.Replace(deployment("app"), "metadata: {name: app}", "metadata: {name: app, labels: {tier: front}}", 1)
	return strings.Replace(text, "example.com/app:1", image, 1)
}

func newScaled(t *testing.T) *scaled {
	t.Helper()
	return newScaledOf(t, tiered("example.com/app:1"))
}

// newScaledOf has a Deployment of the manifest, which others have scaled and labelled.
func newScaledOf(t *testing.T, manifest string) *scaled {
	t.Helper()
	s := &scaled{env: newEnv(t)}
	s.ns = s.namespace()
	s.want = s.of("1", manifest)
	s.install(s.want)
	s.scale("hpa", 3)
	s.edit("kubectl-label", s.app(), `{"metadata":{"labels":{"tier":"back"}}}`)
	return s
}

func (s *scaled) of(version, manifest string) deliver.Desired {
	return s.env.want(s.ns, chart{version: version, manifest: manifest})
}

func (s *scaled) app() *unstructured.Unstructured { return s.get("apps/v1", "Deployment", s.ns, "app") }

func (s *scaled) scale(manager string, replicas int) {
	s.t.Helper()
	s.edit(manager, s.app(), `{"spec":{"replicas":`+string(rune('0'+replicas))+`}}`)
}

func (s *scaled) expect(replicas int, tier string) {
	s.t.Helper()
	app := s.app()
	s.Expect(app.Object["spec"]).To(HaveKeyWithValue("replicas", BeEquivalentTo(replicas)))
	s.Expect(app.GetLabels()).To(HaveKeyWithValue("tier", tier))
}

// again has but the label changed.
func (s *scaled) again() {
	s.t.Helper()
	s.expectRepaired(s.find(deliver.Repair{Release: s.want.Release}))
	s.edit("kubectl-label", s.app(), `{"metadata":{"labels":{"tier":"back"}}}`)
}

// TestRulesLeaveFieldsToOthers in a repair of another field, and in an upgrade.
func TestRulesLeaveFieldsToOthers(t *testing.T) {
	t.Parallel()
	s := newScaled(t)
	found := s.find(deliver.Repair{Release: s.want.Release, Ignore: byHPA, Report: true})
	s.Expect(changesOf(found)).To(Equal([]string{"app .metadata.labels.tier"}))
	s.Expect(managersOf(found)).To(Equal([]string{"kubectl-label"}))
	found = s.find(deliver.Repair{Release: s.want.Release, Ignore: byHPA})
	s.Expect(changesOf(found)).To(Equal([]string{"app .metadata.labels.tier"}))
	s.Expect(found[0].Repaired).To(BeTrue())
	s.Expect(found[0].Now).NotTo(Equal(found[0].Applied), "the replicas aren't the add-on's")
	s.expect(3, "front")

	s.meter.reset()
	found = s.find(deliver.Repair{Release: s.want.Release, Ignore: byHPA})
	s.Expect(changesOf(found)).To(BeEmpty())
	s.Expect(found[0].Differs()).To(BeFalse())
	s.expectWrites(0, "nothing is to be done")

	next := s.of("2", tiered("example.com/app:2"))
	next.Ignore = byHPA
	s.install(next)
	s.expect(3, "front")
	s.Expect(s.app().GetManagedFields()).To(ContainElement(HaveField("Manager", "hpa")))
	s.Expect(changesOf(s.find(deliver.Repair{Release: s.want.Release, Ignore: byHPA}))).To(BeEmpty())

	found = s.find(deliver.Repair{Release: s.want.Release})
	s.Expect(changesOf(found)).To(Equal([]string{"app .spec.replicas"}), "the rule is gone")
	s.expect(1, "front")
	s.Expect(changesOf(s.find(deliver.Repair{Release: s.want.Release}))).To(BeEmpty())
	s.scale("hpa", 3)
	s.install(s.of("3", tiered("example.com/app:3")))
	s.expect(1, "front")
}

// TestRulesThatDoNotApply leave nothing to anybody.
func TestRulesThatDoNotApply(t *testing.T) {
	for title, rule := range map[string]addonsv1.DriftIgnoreRule{
		"another manager": {Managers: []string{"vpa"}},
		"another kind":    {Kind: "ConfigMap", Managers: []string{"hpa"}},
		"another name":    {Kind: "Deployment", Name: "other"},
		"another field":   {Kind: "Deployment", Paths: []string{"/spec/paused"}},
	} {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			s := newScaled(t)
			s.expectRepaired(s.find(deliver.Repair{Release: s.want.Release, Ignore: drift.Rules{rule}}))
			s.expect(1, "front")
			s.scale("hpa", 3)
			next := s.of("2", tiered("example.com/app:2"))
			next.Ignore = drift.Rules{rule}
			s.install(next)
			s.expect(1, "front")
		})
	}
}

// TestRulesKeepFieldsAway that somebody removed, until they are gone.
func TestRulesKeepFieldsAway(t *testing.T) {
	e, ns := beside(t)
	want := e.want(ns, chart{version: "1", manifest: labelled})
	e.install(want)
	e.edit("kubectl-edit", e.get("v1", "ConfigMap", ns, "settings"), `{"data":{"key":"y","second":null}}`)
	rules := drift.Rules{{Kind: "ConfigMap", Paths: []string{"/data/second"}}}
	found := e.find(deliver.Repair{Release: want.Release, Ignore: rules})
	e.Expect(changesOf(found)).To(Equal([]string{"settings .data.key"}))
	e.Expect(e.get("v1", "ConfigMap", ns, "settings").Object["data"]).To(Equal(map[string]any{"key": "x"}))
	e.Expect(changesOf(e.find(deliver.Repair{Release: want.Release, Ignore: rules}))).To(BeEmpty())
	e.expectRepaired(e.find(deliver.Repair{Release: want.Release}))
	e.Expect(e.get("v1", "ConfigMap", ns, "settings").Object["data"]).To(Equal(map[string]any{"key": "x", "second": "z"}))
}

// TestRulesKeepNothingNewAway: nobody has what the chart didn't have before.
func TestRulesKeepNothingNewAway(t *testing.T) {
	e, ns := beside(t)
	e.install(e.want(ns, chart{version: "1", manifest: configMap("settings", "x")}))
	next := e.want(ns, chart{version: "2", manifest: labelled})
	next.Ignore = drift.Rules{{Kind: "ConfigMap"}}
	e.install(next)
	e.Expect(e.get("v1", "ConfigMap", ns, "settings").Object["data"]).To(Equal(map[string]any{"key": "x", "second": "z"}))
}

// hasty is a client of which somebody is faster than its writes. Whoever that is writes with
// another client.
type hasty struct {
	client.Client
	before func()
}

func (c hasty) Patch(ctx context.Context, o client.Object, patch client.Patch, options ...client.PatchOption) error {
	c.before()
	return c.Client.Patch(ctx, o, patch, options...)
}

func (c hasty) Apply(ctx context.Context, o runtime.ApplyConfiguration, options ...client.ApplyOption) error {
	all := &client.ApplyOptions{}
	if all.ApplyOptions(options); !slices.Contains(all.DryRun, metav1.DryRunAll) {
		c.before()
	}
	return c.Client.Apply(ctx, o, options...)
}

// TestRepairOfWhatIsChangedMeanwhile overwrites nothing that rules leave to others, and nothing
// that isn't the object any more. If that continues, it tells when to look again.
func TestRepairOfWhatIsChangedMeanwhile(t *testing.T) {
	for title, tc := range map[string]struct {
		first func(s *scaled)
		then  func(s *scaled, i int)
		once  int // the replicas after a repair that somebody was faster than once
	}{
		"somebody continues": {func(*scaled) {}, func(s *scaled, i int) { s.scale("hpa", 4+i%2) }, 4},
		"somebody begins":    {(*scaled).again, func(s *scaled, i int) { s.scale("hpa", 4+i%2) }, 4},
		"somebody makes it again": {func(*scaled) {}, func(s *scaled, _ int) {
			copied := s.app().DeepCopy()
			s.delete(s.app())
			copied.SetResourceVersion("")
			copied.SetUID("")
			copied.SetManagedFields(nil)
			s.Expect(unstructured.SetNestedField(copied.Object, int64(2), "spec", "replicas")).To(Succeed())
			s.Expect(s.target.Client.Create(s.ctx, copied, client.FieldOwner("backup"))).To(Succeed())
		}, 1},
	} {
		for _, always := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, always: %t", title, always), func(t *testing.T) {
				t.Parallel()
				s := newScaled(t)
				tc.first(s)
				cluster, n := s.target.Client, 0
				s.target.Client = hasty{cluster, func() {
					s.target.Client = cluster
					if n++; n == 1 || always {
						tc.then(s, n-1)
					}
				}}
				repair := deliver.Repair{Release: s.want.Release, Ignore: byHPA}
				if always {
					found := s.look(repair)
					s.Expect(found).To(HaveLen(1))
					s.Expect(found[0].Repaired).To(BeFalse())
					s.Expect(found[0].Wait).To(BeNumerically(">", 0))
					s.Expect(s.app().GetLabels()).To(HaveKeyWithValue("tier", "back"))
				}
				found := s.find(repair)
				s.Expect(n).To(BeNumerically(">", 1))
				s.Expect(found).To(HaveLen(1))
				s.Expect(found[0].Repaired).To(BeTrue(), "%+v", found[0])
				s.Expect(s.app().GetLabels()).To(HaveKeyWithValue("tier", "front"))
				if !always {
					s.expect(tc.once, "front")
				}
			})
		}
	}
}

// TestRepairSparesWhatSomebodyMakesMeanwhile in the place of an object: it isn't the add-on's.
func TestRepairSparesWhatSomebodyMakesMeanwhile(t *testing.T) {
	for title, isGone := range map[string]bool{"of one that was changed": false, "of one that is gone": true} {
		t.Run(title, func(t *testing.T) {
			e, ns := beside(t)
			want := e.want(ns, chart{version: "1", manifest: configMap("x", "a")})
			e.install(want)
			if isGone {
				e.delete(e.get("v1", "ConfigMap", ns, "x"))
			} else {
				e.edit("kubectl-edit", e.get("v1", "ConfigMap", ns, "x"), `{"data":{"key":"b"}}`)
			}
			cluster, done := e.target.Client, false
			e.target.Client = hasty{cluster, func() {
				e.target.Client = cluster
				if !done && !isGone {
					e.delete(e.get("v1", "ConfigMap", ns, "x"))
				}
				if !done {
					done = true
					e.apply("kubectl", theirConfigMap(ns, "x", "theirs"))
				}
			}}
			o, err := e.repair(want.Release)
			e.Expect(err).NotTo(HaveOccurred())
			e.Expect(done).To(BeTrue())
			e.Expect(o.Phase).To(Equal(addonsv1.AddonFailed), "%+v", o)
			o, err = e.repair(want.Release)
			e.Expect(err).NotTo(HaveOccurred())
			e.Expect(o.Reason).To(Equal(object.ReasonObjectExists), o.Message)
			x := e.get("v1", "ConfigMap", ns, "x")
			e.Expect(x.Object["data"]).To(Equal(map[string]any{"key": "theirs"}))
			e.Expect(x.GetLabels()).NotTo(HaveKey(addonsv1.AddonLabel))
		})
	}
}
