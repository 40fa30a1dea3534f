// SPDX-License-Identifier: Apache-2.0

package migration_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/yaml"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/migration"
	"github.com/cluster-chandler/chandler/internal/render/values"
	"github.com/cluster-chandler/chandler/internal/stack"
	"github.com/cluster-chandler/chandler/test/must"
)

const namespace = "team-a"

// found has the clusters a, b and so on. Those before "c" are in prod.
func found(releases ...*migration.Release) *migration.Found {
	f := &migration.Found{World: &migration.World{Namespace: namespace, Origin: migration.Provider}, Releases: releases}
	for _, name := range []string{"a", "b", "c"} {
		c := clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if name < "c" {
			c.Labels = map[string]string{"env": "prod"}
		}
		f.Clusters = append(f.Clusters, c)
	}
	return f
}

// release is one of chart web, in clear.
func release(cluster, name string, values map[string]any) *migration.Release {
	return &migration.Release{
		Cluster: cluster, Previous: "web", Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"env": "prod"}},
		Addon:  addonsv1.Addon{Name: name, Namespace: "web", Chart: addonsv1.ChartSource{Path: "web"}, AdoptionPolicy: addonsv1.AdoptionPolicyAdopt},
		Values: values, Shown: values,
	}
}

// write has the AddonStack of a plan there, and the labels of its Clusters.
func write(f *migration.Found, p *migration.Plan) {
	f.Stacks = []addonsv1.AddonStack{*p.Stack}
	for i := range f.Clusters {
		if slices.Contains(p.Clusters, f.Clusters[i].Name) {
			f.Clusters[i].Labels = p.Stack.Spec.ClusterSelector.MatchLabels
		}
	}
}

// TestPlans compares what releases become with what is to be written.
func TestPlans(t *testing.T) {
	one := map[string]any{"replicas": 1.0, "log": map[string]any{"level": "info"}}
	two := map[string]any{"replicas": 2.0, "log": map[string]any{"level": "info"}}
	with := func(r *migration.Release, change func(*migration.Release)) *migration.Release { change(r); return r }
	secret := func(r *migration.Release) { r.Shown = nil }
	template := func(r *migration.Release) { r.Template = "replicas: {{ 1 }}" }
	from := func(r *migration.Release) { r.From = []addonsv1.ValuesReference{{Kind: "Secret", Name: "theirs"}} }
	for name, c := range map[string]struct {
		releases []*migration.Release
		want     []string // each AddonStack, its selector, its add-on's values, the Secrets and the labelled Clusters
	}{
		"equal": {[]*migration.Release{release("a", "web", one), release("b", "web", one)},
			[]string{"web: env=prod web values={log,replicas} from=[] secrets=[] clusters=[]"}},
		"values that differ": {[]*migration.Release{release("a", "web", one), release("b", "web", two)},
			[]string{"web: env=prod web values={log} from=[web-{{ .Cluster.metadata.name }}-values] secrets=[web-a-values web-b-values] clusters=[]"}},
		"a template": {[]*migration.Release{with(release("a", "web", one), template), with(release("b", "web", two), template)},
			[]string{"web: env=prod web template values={} from=[] secrets=[] clusters=[]"}},
		"a template of one": {[]*migration.Release{with(release("a", "web", one), template), release("b", "web", one)},
			[]string{"web: env=prod web values={log,replicas} from=[] secrets=[] clusters=[]"}},
		"values that nobody shows": {[]*migration.Release{with(release("a", "web", one), secret), with(release("b", "web", two), secret)},
			[]string{"web: env=prod web values={} from=[web-values web-{{ .Cluster.metadata.name }}-values] secrets=[web-values web-a-values web-b-values] clusters=[]"}},
		"values from an object": {[]*migration.Release{with(release("a", "web", one), from), with(release("b", "web", two), from)},
			[]string{"web: env=prod web values={log} from=[theirs web-{{ .Cluster.metadata.name }}-values] secrets=[web-a-values web-b-values] clusters=[]"}},
		"values from an object of one": {[]*migration.Release{with(release("a", "web", one), from), release("b", "web", one)},
			[]string{"web: env=prod web values={} from=[web-values] secrets=[web-values] clusters=[]"}},
		"not all that the selector selects": {[]*migration.Release{release("a", "web", one)},
			[]string{"web: migrated.addons.cluster.x-k8s.io/web=caaph web values={log,replicas} from=[] secrets=[] clusters=[a]"}},
		"names that differ": {[]*migration.Release{release("a", "web-1", one), release("b", "web-2", two)}, []string{
			"web-a: migrated.addons.cluster.x-k8s.io/web-a=caaph web-1 values={log,replicas} from=[] secrets=[] clusters=[a]",
			"web-b: migrated.addons.cluster.x-k8s.io/web-b=caaph web-2 values={log,replicas} from=[] secrets=[] clusters=[b]",
		}},
		"releases of one name on one cluster": {[]*migration.Release{with(release("a", "web", one), secret), with(release("a", "web", two), func(r *migration.Release) {
			secret(r)
			r.Addon.Namespace = "two"
		})}, []string{
			"web-HASH: migrated.addons.cluster.x-k8s.io/web-HASH=caaph web values={} from=[web-HASH-values] secrets=[web-HASH-values] clusters=[a]",
			"web-HASH: migrated.addons.cluster.x-k8s.io/web-HASH=caaph web values={} from=[web-HASH-values] secrets=[web-HASH-values] clusters=[a]",
		}},
		"no values": {[]*migration.Release{release("a", "web", nil), release("b", "web", map[string]any{})},
			[]string{"web: env=prod web values={} from=[] secrets=[] clusters=[]"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, p := range found(c.releases...).Plans() {
				got = append(got, describe(p))
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestPlansOfManyReleases has more releases on a cluster than it can run AddonStacks.
func TestPlansOfManyReleases(t *testing.T) {
	g := NewWithT(t)
	f := found()
	for i := range stack.MaxOfCluster {
		name := fmt.Sprint("web-", i)
		f.Releases = append(f.Releases, release("a", name, nil), release("b", name, nil))
	}
	f.Plans()
	g.Expect(f.Problems).To(BeEmpty())
	f.Releases = append(f.Releases, release("b", "more", nil))
	f.Plans()
	g.Expect(f.Problems).To(ConsistOf(ContainSubstring("cluster b ")))
}

// TestPlanBesideAStackOfTheName has a stack that a person wrote under the name of a release.
func TestPlanBesideAStackOfTheName(t *testing.T) {
	g := NewWithT(t)
	f := found(release("a", "web", nil))
	f.Others = []string{"web"}
	g.Expect(f.Plans()[0].Stack.Name).To(Equal("web-a"))
	g.Expect(f.Problems).To(BeEmpty())
	f.Others = append(f.Others, "web-a")
	f.Foresee(t.Context(), f.Plans(), func(context.Context, *addonsv1.AddonPlan) error {
		return errors.New("a plan would be of the other stack")
	})
	g.Expect(f.Problems).To(ConsistOf(ContainSubstring("AddonStack web-a")))
}

var hash = regexp.MustCompile("-[0-9a-f]{8}")

func describe(p *migration.Plan) string {
	a := p.Stack.Spec.Addons[0]
	text := fmt.Sprintf("%s: %s %s", p.Stack.Name, metav1.FormatLabelSelector(p.Stack.Spec.ClusterSelector), a.Name)
	if a.ValuesTemplate != "" && a.ValuesTemplateMode == addonsv1.ValuesTemplateModeLenient {
		text += " template"
	}
	keys, from, secrets := slices.Sorted(maps.Keys(valuesOf(a))), []string{}, []string{}
	for _, ref := range a.ValuesFrom {
		from = append(from, ref.Name)
	}
	for _, s := range p.Secrets {
		secrets = append(secrets, s.GetName())
	}
	text = fmt.Sprintf("%s values={%s} from=%v secrets=%v clusters=%v", text, strings.Join(keys, ","), from, secrets, p.Clusters)
	return hash.ReplaceAllString(text, "-HASH")
}

func valuesOf(a addonsv1.Addon) map[string]any {
	is := map[string]any{}
	if a.Values != nil {
		_ = yaml.Unmarshal(a.Values.Raw, &is)
	}
	return is
}

// TestNamesOfPlansStay has some of the AddonStacks written: the others are called as they were.
func TestNamesOfPlansStay(t *testing.T) {
	g := NewWithT(t)
	var f *migration.Found
	var first []*migration.Plan
	for _, all := range [][]*migration.Release{
		{release("a", "web-1", nil), release("b", "web-2", nil), release("c", "web-2", nil)},
		{release("a", "web-1", nil), release("a", "web-2", nil)},
	} {
		f = found(all...)
		first = f.Plans()
		g.Expect(first).To(HaveLen(2))
		g.Expect(first[0].Stack.Name).NotTo(Equal(first[1].Stack.Name))
		for i, p := range first {
			f = found(slices.DeleteFunc(slices.Clone(all), func(r *migration.Release) bool { return r.Addon.Name == p.Stack.Spec.Addons[0].Name })...)
			write(f, p)
			rest := f.Plans()
			g.Expect(rest).To(HaveLen(1))
			g.Expect(rest[0].Stack.ObjectMeta).To(Equal(first[1-i].Stack.ObjectMeta))
			g.Expect(f.Problems).To(BeEmpty())
		}
	}
	f.Others = []string{first[0].Stack.Name}
	f.Plans()
	g.Expect(f.Problems).To(ConsistOf(ContainSubstring(first[0].Stack.Name)), "an AddonStack of others isn't changed")
	long := release("a", "web", nil)
	long.Previous = strings.Repeat("long-name-", 20)
	name := found(long).Plans()[0].Stack.Name
	g.Expect(len(name)).To(BeNumerically("<=", 52))
	g.Expect(name).To(HavePrefix("long-name-"))
}

// TestPlansDoNotShareObjects has releases whose AddonStacks, or whose Secrets, would have one name.
func TestPlansDoNotShareObjects(t *testing.T) {
	named := func(cluster, previous, name string, values map[string]any) *migration.Release {
		r := release(cluster, name, values)
		r.Previous, r.Shown = previous, nil
		return r
	}
	one, two := map[string]any{"x": "1"}, map[string]any{"x": "2"}
	for object, releases := range map[string][]*migration.Release{
		"AddonStack web-a":    {named("a", "web", "web-1", nil), named("b", "web", "web-2", nil), named("b", "web-a", "web-a", nil)},
		"Secret web-a-values": {named("a", "web", "web", one), named("b", "web", "web", two), named("b", "web-a", "web-a", one)},
	} {
		g := NewWithT(t)
		f := found(releases...)
		f.Plans()
		g.Expect(f.Problems).To(ConsistOf(ContainSubstring(object)), object)
	}
}

// TestValuesAreThoseOfEachCluster merges what is written for each of random values as Chandler does.
func TestValuesAreThoseOfEachCluster(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		var releases []*migration.Release
		isShown := random.IntN(2) == 0
		for _, cluster := range []string{"a", "b", "c"}[:1+random.IntN(3)] {
			r := release(cluster, "web", randomValues(random, 3))
			if !isShown {
				r.Shown = nil
			}
			releases = append(releases, r)
		}
		plans := found(releases...).Plans()
		documents := migration.YAML(plans)
		stack, secrets := read(t, documents)
		for _, r := range releases {
			var layers []map[string]any
			for _, ref := range stack.Spec.Addons[0].ValuesFrom {
				layers = append(layers, secrets[strings.ReplaceAll(ref.Name, "{{ .Cluster.metadata.name }}", r.Cluster)])
			}
			merged := values.Merge(append(layers, valuesOf(stack.Spec.Addons[0]))...)
			if diff := cmp.Diff(r.Values, merged); diff != "" {
				t.Fatalf("cluster %s: -want +got:\n%s\n%s", r.Cluster, diff, documents)
			}
		}
	}
}

// read returns the AddonStack, and the values in Secrets by their names.
func read(t *testing.T, documents string) (*addonsv1.AddonStack, map[string]map[string]any) {
	t.Helper()
	stack, secrets := &addonsv1.AddonStack{}, map[string]map[string]any{}
	for document := range strings.SplitSeq(strings.TrimPrefix(documents, "---\n"), "\n---\n") {
		is := &struct {
			Kind       string
			Metadata   metav1.ObjectMeta
			StringData map[string]string
		}{}
		document += "\n" // of the last line
		must.Succeed(t, yaml.Unmarshal([]byte(document), is))
		if is.Kind == "AddonStack" {
			must.Succeed(t, yaml.UnmarshalStrict([]byte(document), stack))
			continue
		}
		in := map[string]any{}
		must.Succeed(t, yaml.Unmarshal([]byte(is.StringData["values.yaml"]), &in))
		secrets[is.Metadata.Name] = in
	}
	return stack, secrets
}

// randomValues are of few keys, so that clusters often have the same ones.
func randomValues(random *rand.Rand, depth int) map[string]any {
	made := map[string]any{}
	for range random.IntN(4) {
		key := string(rune('k' + random.IntN(4)))
		switch kind := random.IntN(8); {
		case kind < 3 && depth > 0:
			made[key] = randomValues(random, depth-1)
		case kind < 4:
			made[key] = []any{float64(random.IntN(2)), nil, map[string]any{"x": "y"}}
		case kind < 5:
			made[key] = nil
		case kind < 6:
			made[key] = []any{"yes", "1", "", " x: y\n", "12e3"}[random.IntN(5)]
		default:
			made[key] = []any{true, 0.5, 1e6, 3.0, float64(1 << 40)}[random.IntN(5)]
		}
	}
	return made
}
