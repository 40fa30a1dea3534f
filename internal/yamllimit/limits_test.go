// SPDX-License-Identifier: Apache-2.0

package yamllimit

import (
	"strings"
	"testing"
	"time"

	yamlv3 "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"

	"github.com/cluster-chandler/chandler/fleet/jsonsize"
	"github.com/cluster-chandler/chandler/test/cost"
)

func TestCheck(t *testing.T) {
	limits := Limits{Bytes: 4000, Values: 100, Depth: 10, Written: 2000}
	x := func(n int) string { return strings.Repeat("x", n) }
	list := func(n int, item string) string { return "[" + strings.Repeat(item+",", n) + "]" }
	for name, tc := range map[string]struct{ text, refused string }{
		"empty":                             {text: ""},
		"comments":                          {text: "# nothing\n"},
		"a map":                             {text: "a: {b: [1, 2]}\n"},
		"aliases":                           {text: "a: &a {x: 1}\nb: *a\nc: {<<: *a}\n"},
		"an anchor and a star that is none": {text: "a: &a x\nb: '*'\nc: a && b\n"},
		"as many values":                    {text: list(98, "1")}, // and the list, and the document
		"documents":                         {text: strings.Repeat("a: 1\n---\n", 24)},
		"brackets in a string":              {text: "a: '" + strings.Repeat("[", 90) + "'"},
		"what is no YAML, and harmless":     {text: "a: b: c"},
		"JSON":                              {text: `{"a": ["*", "&"]}`},

		"too long":                           {"a: " + x(4000), "4003 bytes, at most 4000"},
		"too many items":                     {list(101, "1"), "more than 100 lines, dashes or brackets"},
		"too many lines":                     {strings.Repeat("\n", 101), "more than 100 lines"},
		"too many lines as old Macs have":    {strings.Repeat("- a\r", 101), "more than 100 lines"},
		"too many lines of Unicode":          {strings.Repeat("- a\u0085- b\u2028- c\u2029", 40), "more than 100 lines"},
		"UTF-16":                             {"\xfe\xff" + strings.Repeat("\x00,\x00a", 101), "it isn't UTF-8"},
		"too many lists in lists":            {strings.Repeat(strings.Repeat("- ", 6)+"a\n", 20), "more than 100 lines"},
		"too many brackets":                  {strings.Repeat("["+strings.Repeat("[", 5)+strings.Repeat("]", 5)+"],\n", 20), "more than 100 lines"},
		"too many values":                    {strings.Repeat("a: b\n", 60), "more than 100 values"},
		"too many values in pairs":           {list(40, "a: b"), "more than 100 values"},
		"too many values in a line":          {strings.Repeat("- ", 7) + list(95, "1"), "more than 100 values"},
		"too many documents":                 {strings.Repeat("--- a\n", 60), "more than 100"},
		"too many by aliases":                {"a: &a " + list(10, "1") + "\nb: " + list(10, "*a"), "more than 100 values"},
		"too many by aliases of aliases":     {"a: &a " + list(4, "1") + "\nb: &b " + list(5, "*a") + "\nc: " + list(5, "*b"), "more than 100 values"},
		"too large by aliases":               {"a: &a " + x(500) + "\nb: " + list(5, "*a"), "larger than 2000 bytes with all aliases written out"},
		"too large by aliases that are keys": {"a: &a " + x(500) + "\nb: [{*a : 1}, {*a : 1}, {*a : 1}]", "larger than 2000 bytes"},
		"too large by aliases in lines":      {"a: &a " + x(500) + "\nb:\n" + strings.Repeat("- *a\n", 5), "larger than 2000 bytes"},
		"too large by what JSON escapes":     {"a: " + strings.Repeat("<", 400), "larger than 2000 bytes"},
		"too large by its escapes":           {`a: "` + strings.Repeat(`\0`, 400) + `"`, "larger than 2000 bytes"},
		"too large in all documents":         {"--- &a " + x(1500) + "\n--- &a " + x(1500) + " *\n", "larger than 2000 bytes"},
		"too deep":                           {strings.Repeat("[", 11) + strings.Repeat("]", 11), "nested deeper than 10"},
		"too deep, with brackets in strings": {strings.Repeat(`["]",`, 11) + strings.Repeat("]", 11), "nested deeper than 10"},
		"too deep in a line":                 {strings.Repeat("- ", 11) + "a", "nested deeper than 10"},
		"too deep after a byte order mark":   {"\uFEFF" + strings.Repeat("- ", 11) + "a", "nested deeper than 10"},
		"too deep in keys":                   {strings.Repeat("? ", 11) + "a", "nested deeper than 10"},
		"too deep in lines":                  {strings.Join([]string{"a:", "- b:", "  - c:", "    - d:", "      - e:", "        - f: 1"}, "\n"), "nested deeper than 10"},
		"too deep by aliases":                {"a: &a [[[[1]]]]\nb: &b [[[*a]]]\nc: [[*b]]", "nested deeper than 10"},
		"an anchor in itself":                {"a: &a [*a]", "contains itself"},
		"an alias of nothing":                {"a: *b\nc: &c 1", "unknown anchor"},
	} {
		t.Run(name, func(t *testing.T) {
			err := limits.Check([]byte(tc.text))
			switch {
			case tc.refused == "" && err != nil:
				t.Errorf("refused: %v", err)
			case tc.refused != "" && (err == nil || !strings.Contains(err.Error(), tc.refused)):
				t.Errorf("got %v, want %q", err, tc.refused)
			}
		})
	}
}

// What has few lines and commas, yet millions of values, is refused before a parser sees it.
func TestTheLookItselfTakesLittle(t *testing.T) {
	for name, text := range map[string]string{
		"lists in lists, in lines": strings.Repeat(strings.Repeat("- ", 27)+"a\n", 290_000),
		"lists in lists, in flow":  "[" + strings.Repeat(strings.Repeat("[", 5000)+strings.Repeat("]", 5000)+",", 1600) + "]",
		"pairs":                    "[" + strings.Repeat("a: b,", 299_000) + "]",
	} {
		t.Run(name, func(t *testing.T) {
			var err error
			took := cost.Of(func() { err = Manifest.Check([]byte(text)) })
			if err == nil {
				t.Error("it is accepted")
			}
			took.Expect(t, 5*time.Second, 256<<20)
			t.Logf("%d bytes, %s, %d MiB: %v", len(text), took.Work, took.Held>>20, err)
		})
	}
}

// What Check accepts is as small as it says, once it is decoded, and the look at the characters
// of a text never sees less than the parser.
func FuzzCheck(f *testing.F) {
	for _, seed := range []string{
		"", "a: 1", "a: &a [1]\nb: *a", "a: &a xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\nl: [*a,*a,*a,*a]", "<<: {a: 1}", "---\na: 1\n---\nb: 2",
		"? [a]\n: b", "\xff", "- - - a\n- ? b\n", "[a: b, c: d]", "\uFEFF- - - a", "a: |\n  [[[\n", `{"a": "\0\x00\L"}`, "- a\r- b\u0085- c", "\xff\xfea\x00",
		"a: <>&*\n", "y: y", "a:\n- b:\n  - c:\n", "'", "!!set {a, b}", "--- - a\n--- |\n b\n...\n",
	} {
		f.Add([]byte(seed))
	}
	limits := Limits{Bytes: 1000, Values: 60, Depth: 12, Written: 2000}
	f.Fuzz(func(t *testing.T, text []byte) {
		if limits.Check(text) != nil {
			return
		}
		if data, err := yaml.YAMLToJSON(text); err == nil {
			if values := jsonsize.Values(data); values > limits.Values || len(data) > 2*limits.Written {
				t.Errorf("it came to %d values in %d bytes", values, len(data))
			}
		}
		most, _ := atMost(text)
		var document yamlv3.Node
		if mayHaveAliases(text) || yamlv3.Unmarshal(text, &document) != nil {
			return
		}
		if is, err := limits.measure(&document, 0, map[*yamlv3.Node]size{}); err != nil || is.Values > most.Values || is.Written > most.Written || is.Depth > most.Depth {
			t.Errorf("it came to %+v (%v), more than %+v", is, err, most)
		}
	})
}
