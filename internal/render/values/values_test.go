// SPDX-License-Identifier: Apache-2.0

package values_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/chart/v2/loader"

	"github.com/cluster-chandler/chandler/internal/render/job"
	"github.com/cluster-chandler/chandler/internal/render/values"
	"github.com/cluster-chandler/chandler/test/cost"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/rendering"
)

func TestMergeValues(t *testing.T) {
	type m = map[string]any
	cases := map[string]struct {
		layers []map[string]any
		want   m
	}{
		"nothing":                    {nil, m{}},
		"one":                        {[]m{{"a": "x"}}, m{"a": "x"}},
		"the later wins":             {[]m{{"a": "x", "b": "y"}, {"a": "z"}}, m{"a": "z", "b": "y"}},
		"maps are merged":            {[]m{{"a": m{"b": "x", "c": "y"}}, {"a": m{"c": "z"}}}, m{"a": m{"b": "x", "c": "z"}}},
		"lists are replaced":         {[]m{{"a": []any{"x", "y"}}, {"a": []any{"z"}}}, m{"a": []any{"z"}}},
		"null stays":                 {[]m{{"a": m{"b": "x"}}, {"a": nil}}, m{"a": nil}},
		"a map over null":            {[]m{{"a": nil}, {"a": m{"b": "x"}}}, m{"a": m{"b": "x"}}},
		"a map over a scalar":        {[]m{{"a": "x"}, {"a": m{"b": "x"}}}, m{"a": m{"b": "x"}}},
		"a scalar over a map":        {[]m{{"a": m{"b": "x"}}, {"a": "x"}}, m{"a": "x"}},
		"an empty map hides nothing": {[]m{{"a": m{"b": "x"}}, {"a": m{}}}, m{"a": m{"b": "x"}}},
		"layers without values":      {[]m{nil, {"a": "x"}, nil}, m{"a": "x"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			must.Equal(t, c.want, values.Merge(c.layers...))
		})
	}
}

// TestMergedValuesAreBounded has layers, of which each may be there, be too large together.
func TestMergedValuesAreBounded(t *testing.T) {
	type m = map[string]any
	text := strings.Repeat("x", 3<<20)
	list := make([]any, 100_000)
	for name, c := range map[string]struct {
		below, layer m
		says         string
	}{
		"small":                   {m{"a": "x"}, m{"b": "x"}, ""},
		"large":                   {m{"a": text}, m{"b": text}, "larger than 4194304 bytes"},
		"one in place of another": {m{"a": text}, m{"a": text}, ""},
		"many values":             {m{"a": list}, m{"b": list}, "more than 150000 values"},
	} {
		t.Run(name, func(t *testing.T) {
			merged, err := values.MergeWithin(c.below, c.layer)
			if c.says == "" {
				must.Succeed(t, err)
				must.Equal(t, values.Merge(c.below, c.layer), merged)
			} else if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want %q", err, c.says)
			}
		})
	}
}

func randomValues(r *rand.Rand, depth int) map[string]any {
	values := map[string]any{}
	for range r.IntN(4) {
		key := string(rune('a' + r.IntN(4)))
		switch kind := r.IntN(5); {
		case kind == 0:
			values[key] = nil
		case kind == 1:
			values[key] = []any{randomValues(r, 0), float64(r.IntN(9))}
		case kind < 4 && depth > 0:
			values[key] = randomValues(r, depth-1)
		default:
			values[key] = r.IntN(99)
		}
	}
	return values
}

func TestMergeValuesProperties(t *testing.T) {
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 1))
		a, b, c := randomValues(r, 3), randomValues(r, 3), randomValues(r, 3)
		a0, b0 := values.Merge(a), values.Merge(b)
		merged := values.Merge(a, b)
		same := func(what string, x, y map[string]any) {
			if diff := cmp.Diff(x, y); diff != "" {
				t.Fatalf("seed %d: %s:\n%s", seed, what, diff)
			}
		}
		same("a copy is equal", a, a0)
		same("merging is idempotent", merged, values.Merge(merged, b))
		same("merging nothing changes nothing", merged, values.Merge(map[string]any{}, merged, nil))
		same("as Helm merges files", merged, loader.MergeMaps(a, b))
		same("layers can be grouped from the left", values.Merge(a, b, c), values.Merge(values.Merge(a, b), c))
		same("the first layer is untouched", a, a0)
		same("the second layer is untouched", b, b0)
	}
}

func TestParseValues(t *testing.T) {
	type m = map[string]any
	r := rendering.NewRenderer(t)
	cases := map[string]struct {
		text string
		want m
	}{
		"empty":      {"", m{}},
		"comments":   {"# nothing\n", m{}},
		"null":       {"null", m{}},
		"YAML":       {"a: {b: [1, 2.5, yes, null, text]}", m{"a": m{"b": []any{1.0, 2.5, true, nil, "text"}}}},
		"JSON":       {`{"a": {"b": "c"}}`, m{"a": m{"b": "c"}}},
		"documents":  {"a: {x: 1}\n---\na: {z: 2}\n", m{"a": m{"x": 1.0, "z": 2.0}}},
		"aliases":    {"a: &a {x: 1}\nb: *a\nc: {<<: *a, z: 2}", m{"a": m{"x": 1.0}, "b": m{"x": 1.0}, "c": m{"x": 1.0, "z": 2.0}}},
		"large ints": {"a: 9007199254740993", m{"a": 9007199254740992.0}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := r.Values(t.Context(), job.Values{Text: []byte(c.text)})
			must.Succeed(t, err)
			must.Equal(t, c.want, got)
			helm, err := loader.LoadValues(strings.NewReader(c.text))
			must.Succeed(t, err)
			must.Equal(t, helm, got, "Helm reads it otherwise")
		})
	}
}

// The values of a published release are read as the operator's Helm read it, within the same limits.
func TestParseValuesLeniently(t *testing.T) {
	r := rendering.NewRenderer(t)
	for _, text := range []string{"", "a: 1\na: 2\n", "x: {a: 1, b: 2}\nx: {a: {c: 3}, a: 4}\n", "a: {b: 1}\n---\na: {b: 2, b: 3}\n"} {
		got, err := r.Values(t.Context(), job.Values{Text: []byte(text), Lenient: true})
		must.Succeed(t, err)
		helm, err := loader.LoadValues(strings.NewReader(text))
		must.Succeed(t, err)
		must.Equal(t, helm, got, text)
	}
	for name, text := range map[string]string{"a list": "[1]", "an alias of itself": "a: &a [*a]", "500 levels": deepBlocks(500), "many aliases": aliasBomb(9, "x"), "2 MiB": "a: " + strings.Repeat("x", 2<<20)} {
		if _, err := r.Values(t.Context(), job.Values{Text: []byte(text), Lenient: true}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// aliasBomb multiplies by 10 with each of its levels; leaf is at the bottom.
func aliasBomb(levels int, leaf string) string {
	var b strings.Builder
	b.WriteString("l0: &l0 " + leaf + "\n")
	for i := 1; i <= levels; i++ {
		name, below := string(rune('a'+i)), string(rune('a'+i-1))
		if i == 1 {
			below = "l0"
		}
		b.WriteString(name + ": &" + name + " [" + strings.TrimSuffix(strings.Repeat("*"+below+",", 10), ",") + "]\n")
	}
	return b.String()
}

// Whatever it takes to find out is taken from a worker, not from the manager.
func TestParseValuesRefuses(t *testing.T) {
	long.InCI(t)
	r := rendering.NewRenderer(t)
	cases := map[string]struct{ text, mentions string }{
		"a list":               {"[1]", "array"},
		"a scalar":             {"s3cr3t", "string"},
		"a syntax error":       {"a: b: c", "mapping values"},
		"a key twice":          {"a: 1\nb: 2\na: 3", `"a"`},
		"a key twice, deep":    {"x: {a: 1, a: 2}", `"a"`},
		"100,000 levels":       {"a: " + strings.Repeat("[", 100_000), "depth"},
		"500 levels":           {"a: " + strings.Repeat("[", 500) + strings.Repeat("]", 500), "deeper"},
		"500 levels of blocks": {deepBlocks(500), "deeper"},
		"100,000 levels of { ": {"a: " + strings.Repeat("{a: ", 100_000), "depth"},
		"many aliases":         {aliasBomb(9, "x"), "excessive aliasing"},
		"few aliases, large":   {aliasBomb(3, strings.Repeat("x", 1<<19)), "more memory than allowed"},
		"an alias of itself":   {"a: &a [*a]", "itself"},
		"2 MiB":                {"a: " + strings.Repeat("x", 2<<20), "at most"},
		"400,000 values":       {"a: [" + strings.Repeat("1,", 400_000) + "]", "more than 150000 values"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var err error
			took := cost.Of(func() { _, err = r.Values(t.Context(), job.Values{Text: []byte(c.text)}) })
			if err == nil {
				t.Fatal("no error")
			}
			if !strings.Contains(err.Error(), c.mentions) || strings.Contains(err.Error(), "s3cr3t") || len(err.Error()) > 500 {
				t.Errorf("error %.500q, want it to mention %q", err, c.mentions)
			}
			took.Expect(t, time.Second, 48<<20)
			t.Logf("%s, %d MiB allocated", took.Work.Round(time.Millisecond), took.Allocated>>20)
		})
	}
}

func deepBlocks(levels int) string {
	var b strings.Builder
	for i := range levels {
		b.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	return b.String()
}

func FuzzParseValues(f *testing.F) {
	for _, seed := range []string{"", "a: 1", "a: &a [1]\nb: *a", "<<: {a: 1}", "a: {a: {a: [}}}", "---\na: 1\n---\nb: 2", "a: 1\na: 2", "? [a]\n: b", "\xff", aliasBomb(3, "x")} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		read, err := values.Read(&job.Values{Text: data})
		if err != nil {
			return
		}
		must.Equal(t, read, values.Merge(read))
	})
}
