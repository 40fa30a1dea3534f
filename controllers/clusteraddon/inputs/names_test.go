// SPDX-License-Identifier: Apache-2.0

package inputs_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/inputs"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/wanted"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/member"
	"github.com/cluster-chandler/chandler/internal/message"
	"github.com/cluster-chandler/chandler/internal/render"
	"github.com/cluster-chandler/chandler/internal/render/job"
	"github.com/cluster-chandler/chandler/internal/valuesource/layers"
	"github.com/cluster-chandler/chandler/test/addons"
)

// A template's result is used only if an object can have it as its name.
func TestNamesOfObjects(t *testing.T) {
	for name, ok := range map[string]bool{
		"prod-cloud-config": true, "a.b": true, strings.Repeat("a", 253): true,
		"": false, "Prod": false, "../x": false, "kube-system/x": false, "a\nb": false, "a\n": false, " a": false, "a b": false, "-a": false, "a..b": false,
		"a\x00": false, "\xff": false, "ä": false, "{{ . }}": false, "<no value>": false, strings.Repeat("a", 254): false, strings.Repeat("\x1b", 1024): false,
	} {
		refs := addons.Secrets("defaults", "{{ .Cluster.metadata.name }}-config")
		named, err := layers.WithNames(refs, []string{"defaults", name}, "addons[web].valuesFrom")
		if refs[1].Name != "{{ .Cluster.metadata.name }}-config" {
			t.Fatalf("%q: the spec was changed: %v", name, refs)
		}
		if ok {
			if err != nil || !slices.Equal(named, addons.Secrets("defaults", name)) {
				t.Errorf("%q: %v, %v", name, named, err)
			}
			continue
		}
		failed, is := errors.AsType[*failure.Error](err)
		if !is || failed.Reason != job.ReasonValuesInvalid {
			t.Errorf("%q: %v", name, err)
			continue
		}
		for _, part := range []string{"addons[web].valuesFrom[1].name", "{{ .Cluster.metadata.name }}-config", failure.Quote(name), "Secret"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q: %q doesn't tell %q", name, err, part)
			}
		}
		if text := message.Shorten(err.Error(), 1024); text != err.Error() {
			t.Errorf("%q: the message is cut, or in several lines: %q", name, text)
		}
	}
}

// reading returns what reads values for a cluster, in a worker.
func reading(t *testing.T, cluster *member.Member) layers.Reader {
	t.Helper()
	renderer := render.New(render.Options{Workers: 1})
	t.Cleanup(renderer.Close)
	return layers.Reader{Renderer: renderer, Cluster: cluster}
}

// Templates are executed when they or the facts change, by one request for all names of an add-on. A failure is that of one add-on.
func TestNamesAreMadeOnce(t *testing.T) {
	q := inputs.Reader{Values: reading(t, nil), ClusterAddon: client.ObjectKey{Namespace: "team", Name: "prod"}}
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "prod", Labels: map[string]string{"cloud": "blue"}}}
	q.Values.Cluster = member.OfCluster(cluster)
	sourcesBy := func(names ...string) wanted.Addon {
		a := addons.Wanted("platform", "web")
		a.ValuesFrom = addons.Secrets(names...)
		a.Sources = a.ValuesFrom
		return a
	}
	ctx, stop := context.WithCancel(t.Context())
	pass := func(all ...wanted.Addon) []wanted.Addon {
		q.NameSources(ctx, all)
		return all
	}
	expect := func(when string, a wanted.Addon, names ...string) {
		t.Helper()
		if a.Unnamed != nil || !slices.Equal(a.Sources, addons.Secrets(names...)) {
			t.Errorf("%s: %v, %v; want %v", when, a.Sources, a.Unnamed, names)
		}
		used := q.UsedObjects([]wanted.Addon{a})
		for _, name := range names {
			if !used.Has(inputs.Object{Kind: "Secret", Key: client.ObjectKey{Namespace: "team", Name: name}}) {
				t.Errorf("%s: a change of %s isn't an event", when, name)
			}
		}
	}
	plain, both := sourcesBy("plain"), sourcesBy("defaults", "{{ .Cluster.metadata.name }}-config", "{{ .Cluster.metadata.labels.cloud }}", "prod-config")
	wrong := sourcesBy("{{ .Cluster.metadata.labels.nothing }}")

	made := pass(plain, both, wrong)
	expect("without a template", made[0], "plain")
	expect("at first", made[1], "defaults", "prod-config", "blue", "prod-config")
	failed, _ := errors.AsType[*failure.Error](made[2].Unnamed)
	if failed == nil || failed.Reason != job.ReasonValuesTemplateFailed || !strings.Contains(failed.Error(), "addons[web].valuesFrom[0].name") {
		t.Errorf("a field that isn't there: %v", made[2].Unnamed)
	}
	in := &inputs.Inputs{Addon: &made[2]}
	if err := q.ReadValues(t.Context(), in, deliver.Summary{}); !errors.Is(err, made[2].Unnamed) {
		t.Errorf("its values are read: %v", err)
	}

	cluster.Labels["cloud"] = "green"
	q.Values.Cluster = member.OfCluster(cluster)
	expect("with another label", pass(both)[0], "defaults", "prod-config", "green", "prod-config")

	stop() // from here on, nothing can be executed
	expect("nothing changed", pass(plain, both)[1], "defaults", "prod-config", "green", "prod-config")
	cluster.Labels["cloud"] = "red"
	q.Values.Cluster = member.OfCluster(cluster)
	if made := pass(both); made[0].Unnamed == nil {
		t.Errorf("names of another state are kept: %v", made[0].Sources)
	}
	expect("a plain name is no template", pass(plain)[0], "plain")
}

// A template in a name sees what the add-on's valuesTemplate sees.
func TestNamesOfEachKindOfCluster(t *testing.T) {
	ofClass := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "prod"}}
	ofClass.Spec.Topology.ClassRef.Name = "small"
	file := &member.Member{ClusterReference: addonsv1.ClusterReference{Kind: addonsv1.KindKubeconfigContext, Name: "edge"}, Namespace: "team"}
	for name, tc := range map[string]struct {
		cluster        *member.Member
		mode           addonsv1.ValuesTemplateMode
		template, want string
		reason         string
	}{
		"a Cluster's class":                    {cluster: member.OfCluster(ofClass), template: "{{ .Cluster.spec.topology.classRef.name }}", want: "small"},
		"its class, as Cluster Stacks have it": {cluster: member.OfCluster(ofClass), mode: addonsv1.ValuesTemplateModeClusterStack, template: "{{ .Cluster.spec.topology.class }}", want: "small"},
		"a missing field, though it is lenient": {
			cluster: member.OfCluster(ofClass), mode: addonsv1.ValuesTemplateModeLenient, template: "a{{ .Cluster.spec.nothing }}", reason: job.ReasonValuesTemplateFailed,
		},
		"no Cluster":                       {cluster: file, template: "{{ .Member.name }}-config", want: "edge-config"},
		"no Cluster, and one is asked for": {cluster: file, template: "{{ .Cluster.metadata.name }}-config", reason: job.ReasonValuesInvalid},
	} {
		q := inputs.Reader{Values: reading(t, tc.cluster)}
		a := addons.Wanted("platform", "web")
		a.ValuesFrom, a.ValuesTemplateMode = addons.Secrets(tc.template), tc.mode
		all := []wanted.Addon{a}
		q.NameSources(t.Context(), all)
		got := all[0]
		if tc.reason == "" && (got.Unnamed != nil || !slices.Equal(got.Sources, addons.Secrets(tc.want))) {
			t.Errorf("%s: %v, %v", name, got.Sources, got.Unnamed)
		}
		failed, _ := errors.AsType[*failure.Error](got.Unnamed)
		if tc.reason != "" && (failed == nil || failed.Reason != tc.reason || !strings.Contains(failed.Error(), "addons[web].valuesFrom")) {
			t.Errorf("%s: %v, want %s", name, got.Unnamed, tc.reason)
		}
	}
}

func TestReferences(t *testing.T) {
	r := inputs.References{}
	one, two := client.ObjectKey{Name: "one"}, client.ObjectKey{Name: "two"}
	values := inputs.Object{Kind: "Secret", Key: client.ObjectKey{Name: "values"}}
	chart := inputs.Object{Kind: "ConfigMap", Key: client.ObjectKey{Name: "chart"}}

	r.Add(one, values)
	r.Add(one, chart)
	r.Add(two, values)
	if got := sets.New(r.Of(values)...); !got.Equal(sets.New(one, two)) {
		t.Errorf("users of values: %v", got)
	}
	r.Set(one, sets.New(values))
	if got := r.Of(chart); len(got) != 0 {
		t.Errorf("users of chart, which nobody uses any more: %v", got)
	}
	if got := r.Of(values); len(got) != 2 {
		t.Errorf("users of values, which both use: %v", got)
	}
	r.Set(one, nil)
	r.Set(two, nil)
	if left := append(r.Of(values), r.Of(chart)...); len(left) > 0 {
		t.Errorf("left in memory: %v", left)
	}
}
