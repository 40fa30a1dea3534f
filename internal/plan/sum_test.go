// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/plan"
)

// random returns what becomes of a cluster: one of few shapes, with values of its own.
func random(r *rand.Rand, name string) (all []plan.Addon) {
	for i := range 1 + r.IntN(2) {
		a := plan.In([]addonsv1.PlanState{plan.Same, plan.Changed, plan.Held}[r.IntN(3)], "", "of "+name)
		a.Namespace, a.Name = "web", fmt.Sprintf("addon-%d", i)
		if a.State == plan.Changed {
			for j := range 1 + r.IntN(2) {
				change := plan.Change{PlanChange: addonsv1.PlanChange{
					APIVersion: "v1", Kind: "ConfigMap", Namespace: "web", Name: fmt.Sprintf("object-%d", j),
					Action: []addonsv1.PlanAction{plan.Update, plan.Delete, plan.Refuse, plan.Unknown, plan.Create}[r.IntN(5)], Restarts: r.IntN(2) == 0, Message: "of " + name,
				}}
				if change.Action == plan.Update {
					change.Altered = []plan.Field{
						plan.FieldOf(".data.same", plan.ByManifest, "a", "b", true, nil), plan.FieldOf(".data.name", plan.ByManifest, "a", name, true, nil),
					}
				}
				a.Changes = append(a.Changes, change)
			}
		}
		all = append(all, a)
	}
	return all
}

func reversed(r *rand.Rand, addons []plan.Addon) []plan.Addon {
	is := slices.Clone(addons)
	for i := range is {
		a := &is[i]
		a.Changes = append([]plan.Change{}, a.Changes...)
		r.Shuffle(len(a.Changes), func(x, y int) { a.Changes[x], a.Changes[y] = a.Changes[y], a.Changes[x] })
	}
	return is
}

// The order in which clusters answer, and that of their changes, makes no difference; and each cluster is counted once.
func TestSumOfRandomClusters(t *testing.T) {
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 1))
		n := 1 + r.IntN(60)
		var results [][]plan.Addon
		for i := range n {
			results = append(results, random(r, name(i)))
		}
		var first addonsv1.AddonPlanStatus
		for round := range 3 {
			sum, is := plan.Sum{}, addonsv1.AddonPlanStatus{}
			for _, i := range r.Perm(n) {
				if i%7 == 6 {
					sum.Add(name(i), [][]plan.Addon{plan.Silent(), {plan.In(plan.NotChecked, "", "it is so")}}[i%2])
				} else {
					sum.Add(name(i), reversed(r, results[i]))
				}
			}
			sum.Into(&is, n)
			if round == 0 {
				first = is
			} else if diff := cmp.Diff(first, is); diff != "" {
				t.Fatalf("seed %d: another order gives another plan:\n%s", seed, diff)
			}
		}
		counts := first.Clusters
		if all := counts.Same + counts.Changed + counts.Held + counts.Refused + counts.NotChecked + counts.Unreachable; all != int32(n) || counts.Total != int32(n) {
			t.Fatalf("seed %d: %d clusters are counted as %+v", seed, n, counts)
		}
		grouped := int32(0)
		for _, g := range first.Groups {
			grouped += g.Clusters
			if len(g.Examples) != min(int(g.Clusters), 5) {
				t.Fatalf("seed %d: %d clusters have the examples %v", seed, g.Clusters, g.Examples)
			}
			for _, c := range g.Changes {
				for _, f := range c.Fields {
					if want := f.Path == ".data.name" && g.Clusters > 1; f.Varies != want {
						t.Fatalf("seed %d: field %s varies: %v, in a group of %d", seed, f.Path, f.Varies, g.Clusters)
					}
				}
			}
		}
		if first.TruncatedGroups == 0 && grouped != int32(n) {
			t.Fatalf("seed %d: %d of %d clusters are in groups", seed, grouped, n)
		}
	}
}

func name(i int) string { return fmt.Sprintf("cluster-%03d", i) }

// Clusters that are alike but for a value are one group, and each other way is another one. The worst of a cluster counts.
func TestGroups(t *testing.T) {
	changed := func(value string, more ...plan.Change) []plan.Addon {
		c := plan.Change{PlanChange: addonsv1.PlanChange{Kind: "Deployment", Name: "web", Action: plan.Update, Restarts: true}}
		c.Altered = []plan.Field{plan.FieldOf(".spec.image", plan.ByManifest, "a", value, true, nil)}
		return []plan.Addon{{PlanAddon: addonsv1.PlanAddon{Name: "web", State: plan.Changed}, Changes: append([]plan.Change{c}, more...)}}
	}
	sum := plan.Sum{}
	for i := range 197 {
		sum.Add(name(i), changed(name(i)))
	}
	sum.Add("drifted", changed("b", plan.Change{PlanChange: addonsv1.PlanChange{Kind: "Service", Name: "web", Action: plan.Update}}))
	sum.Add("old", changed("b", plan.Change{PlanChange: addonsv1.PlanChange{Kind: "NetworkPolicy", Name: "web", Action: plan.Delete}}))
	sum.Add("theirs", changed("b", plan.Change{PlanChange: addonsv1.PlanChange{Kind: "Service", Name: "web", Action: plan.Refuse}}))
	is := addonsv1.AddonPlanStatus{}
	sum.Into(&is, 200)
	if len(is.Groups) != 4 || is.Groups[0].Clusters != 197 || !is.Groups[0].Changes[0].Fields[0].Varies {
		t.Errorf("the groups are %+v", is.Groups)
	}
	if is.Clusters.Changed != 199 || is.Clusters.Refused != 1 || is.Restarts != 200 || is.Removed != 1 {
		t.Errorf("counted are %+v, %d restarts, %d removed", is.Clusters, is.Restarts, is.Removed)
	}
}

// Clusters on which fields come, go or change, or whose add-ons wait for other reasons, are groups of their own.
func TestGroupsApart(t *testing.T) {
	sum, is := plan.Sum{}, addonsv1.AddonPlanStatus{}
	for name, values := range map[string][2]any{"comes": {nil, "b"}, "goes": {"a", nil}, "changes": {"a", "b"}, "changes otherwise": {"c", "d"}} {
		c := plan.Change{Altered: []plan.Field{plan.FieldOf(".a", plan.ByManifest, values[0], values[1], true, nil)}}
		sum.Add(name, []plan.Addon{plan.AddonOf([]plan.Change{c})})
	}
	sum.Add("waits", []plan.Addon{plan.In(plan.Held, "WaitingForUpgrade", "one")})
	sum.Add("waits, too", []plan.Addon{plan.In(plan.Held, "WaitingForUpgrade", "two")})
	sum.Add("is paused", []plan.Addon{plan.In(plan.Held, "Paused", "three")})
	sum.Into(&is, 7)
	var sizes []int32
	for _, g := range is.Groups {
		sizes = append(sizes, g.Clusters)
	}
	if !slices.Equal(sizes, []int32{2, 2, 1, 1, 1}) {
		t.Errorf("the groups are of %v clusters: %+v", sizes, is.Groups)
	}
}

// The status stays within its bound, whatever clusters say, and counts are whole.
func TestBound(t *testing.T) {
	sum, fields := plan.Sum{}, []plan.Field(nil)
	for i := range 30 {
		fields = append(fields, plan.FieldOf(fmt.Sprintf(".%d.%s", i, strings.Repeat("p", 700)), plan.ByManifest, strings.Repeat("ü", 500), i, true, nil))
	}
	for i := range 120 {
		a := plan.Addon{PlanAddon: addonsv1.PlanAddon{Name: "web", State: plan.Changed}}
		for j := range 250 {
			a.Changes = append(a.Changes, plan.Change{Altered: fields, PlanChange: addonsv1.PlanChange{
				Kind: "ConfigMap", Name: fmt.Sprintf("%d-%d", i, j), Action: plan.Delete, Message: strings.Repeat("m", 600),
			}})
		}
		sum.Add(name(i), []plan.Addon{a})
	}
	is := addonsv1.AddonPlanStatus{}
	for range 17 {
		is.Waves = append(is.Waves, addonsv1.PlanWave{Total: 500})
		for i := range 500 {
			is.Waves[0].Members = append(is.Waves[0].Members, fmt.Sprintf("%s-%d", strings.Repeat("c", 50), i))
		}
	}
	sum.Into(&is, 120)
	text, err := json.Marshal(is)
	if err != nil || len(text) > plan.MaxStatus {
		t.Errorf("it has %d bytes: %v", len(text), err)
	}
	if is.Clusters.Changed != 120 || is.Removed != 120*250 || len(is.Groups)+int(is.TruncatedGroups) != 120 || len(is.Groups) == 0 {
		t.Errorf("counted are %+v, %d removed, %d groups and %d more", is.Clusters, is.Removed, len(is.Groups), is.TruncatedGroups)
	}
	for i, g := range is.Groups {
		if len(g.Changes)+int(g.Truncated) != 250 {
			t.Errorf("group %d has %d changes and %d more", i, len(g.Changes), g.Truncated)
		}
		for _, c := range g.Changes {
			if len(c.Fields)+int(c.TruncatedFields) != 30 {
				t.Errorf("group %d: a change has %d fields and %d more", i, len(c.Fields), c.TruncatedFields)
			}
		}
	}
}

// Where there is no room for all changes, those that are refused or restart pods are there.
func TestRestartsHaveRoom(t *testing.T) {
	a := plan.Addon{PlanAddon: addonsv1.PlanAddon{Name: "web", State: plan.Changed}}
	for i := range 250 {
		a.Changes = append(a.Changes, plan.Change{PlanChange: addonsv1.PlanChange{Kind: "ConfigMap", Name: name(i), Action: plan.Adopt}})
	}
	a.Changes = append(a.Changes, plan.Change{PlanChange: addonsv1.PlanChange{Kind: "StatefulSet", Name: "db", Action: plan.Adopt, Restarts: true}},
		plan.Change{PlanChange: addonsv1.PlanChange{Kind: "Role", Name: "web", Action: plan.Refuse}})
	sum, is := plan.Sum{}, addonsv1.AddonPlanStatus{}
	sum.Add("prod", []plan.Addon{a})
	sum.Into(&is, 1)
	var first []string
	for _, c := range is.Groups[0].Changes[:3] {
		first = append(first, c.Kind)
	}
	if diff := cmp.Diff([]string{"Role", "StatefulSet", "ConfigMap"}, first); diff != "" || is.Groups[0].Truncated != 52 {
		t.Errorf("%d are left out, and the first ones are:\n%s", is.Groups[0].Truncated, diff)
	}
}

// Values from Secrets are never shown, and long ones are cut. Whether two are the same shows all the same.
func TestFieldsHideSecrets(t *testing.T) {
	const secret = "sentinel-7c1e"
	for name, f := range map[string]plan.Field{
		"of a Secret":       plan.FieldOf(".data.password", plan.ByManifest, "old-"+secret, secret, false, nil),
		"with a known part": plan.FieldOf(".data.url", plan.ByManifest, "http://a:"+secret+"@b", "http://c:"+secret+"@b", true, []string{secret}),
		"at a cut":          plan.FieldOf(".data.text", plan.ByManifest, nil, strings.Repeat("a", 60)+secret+strings.Repeat("b", 90), true, []string{secret}),
	} {
		if text := fmt.Sprintf("%+v", f); strings.Contains(text, secret) || strings.Contains(text, secret[:8]) || strings.Contains(text, secret[8:]) {
			t.Errorf("%s: %s", name, text)
		}
	}
	for value, varies := range map[string]bool{"x": false, "y": true} {
		sum, is := plan.Sum{}, addonsv1.AddonPlanStatus{}
		for name, value := range map[string]string{"one": "x", "other": value} {
			c := plan.Change{Altered: []plan.Field{plan.FieldOf(".a", plan.ByManifest, 1, value, false, nil)}}
			sum.Add(name, []plan.Addon{plan.AddonOf([]plan.Change{c})})
		}
		if sum.Into(&is, 2); len(is.Groups) != 1 || is.Groups[0].Changes[0].Fields[0].Varies != varies {
			t.Errorf("with %s on the other cluster, the groups are %+v", value, is.Groups)
		}
	}
	if gone := plan.FieldOf(".a", plan.ByManifest, 1, nil, true, nil); gone.New != "" || gone.Old != "1" {
		t.Errorf("a field that goes is %+v", gone)
	}
}
