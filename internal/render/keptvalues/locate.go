// SPDX-License-Identifier: Apache-2.0

package keptvalues

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/cluster-chandler/chandler/internal/message"
	"github.com/cluster-chandler/chandler/internal/render/manifest"
)

const (
	// shortestPart is how long a value has to be to differ from other text, in bytes, and
	// shortestNumber how long a number.
	shortestPart, shortestNumber = 5, 8
	// shortestWhole is how long one has to be that is all of a field.
	shortestWhole = 4
	// beforeValue is how much of a line before a value counts, in bytes.
	beforeValue = 64
)

// firstWord of a line is the name in what is no more than lines of names and values.
var firstWord = regexp.MustCompile(`^[\s"'-]*([^\s"':=]*)["']?\s*[:=]`)

// locator finds the values of calls in objects.
type locator struct {
	// marks replaces each value, in whatever form, with mark, its call's index, and mark.
	marks *strings.Replacer
	whole map[string]int // the call's index by what may be all of a field
	calls []*call
	same  map[string][]*call // by their values
	found map[string]int     // how often, for values that can't be told apart otherwise
}

// mark is in no text of an object that an API server takes.
const mark = "\x00"

// locate fills in the places of calls.
func locate(calls []*call, documents []manifest.Document, namespace string) {
	l := &locator{calls: calls, whole: map[string]int{}, same: map[string][]*call{}, found: map[string]int{}}
	forms := map[string]int{}
	for i, c := range calls {
		c.places = places{}
		if l.same[c.text] = append(l.same[c.text], c); len(l.same[c.text]) == 1 {
			for _, part := range partsOf(c.text) {
				l.addForms(forms, part, i)
			}
		}
	}
	longestFirst := slices.SortedFunc(maps.Keys(forms), func(a, b string) int { return len(b) - len(a) })
	pairs := make([]string, 0, 2*len(forms))
	for _, form := range longestFirst {
		pairs = append(pairs, form, mark+strconv.Itoa(forms[form])+mark)
	}
	l.marks = strings.NewReplacer(pairs...)
	for _, o := range manifest.ObjectsOf(documents) {
		l.inObject(o, namespace)
	}
	l.arguments()
	l.hidden()
	for _, c := range calls {
		c.exact, c.rough = firstPlaces(c.exact), firstPlaces(c.rough)
	}
}

// partsOf returns the strings in a generated value: a certificate has two.
func partsOf(text string) []string {
	var pair struct{ Cert, Key string }
	if json.Unmarshal([]byte(text), &pair) == nil && pair.Cert != "" {
		return []string{pair.Cert, pair.Key}
	}
	return []string{text}
}

// addForms adds the texts that a template may have made of a value. Several lines, as in PEM, may be indented: the
// longest stands for all.
func (l *locator) addForms(forms map[string]int, part string, index int) {
	if len(part) >= shortestWhole {
		l.whole[part] = index
	}
	line := slices.MaxFunc(strings.Split(part, "\n"), func(a, b string) int { return len(a) - len(b) })
	_, notNumber := strconv.ParseUint(line, 10, 64)
	if len(line) < shortestPart || len(line) < shortestNumber && notNumber == nil {
		return
	}
	sum := sha256.Sum256([]byte(part))
	quoted, _ := json.Marshal(line)
	for _, form := range append(message.InBase64(line), line, strings.ToLower(line), strings.ToUpper(line), strings.Trim(string(quoted), `"`), hex.EncodeToString(sum[:])) {
		if _, known := forms[form]; !known {
			forms[form] = index
		}
	}
}

// inObject looks at all fields of an object.
func (l *locator) inObject(o *unstructured.Unstructured, namespace string) {
	walk(manifest.Identity(o, namespace), o.Object, itemName, l.inField)
}

func (l *locator) inField(path string, value any) {
	text, ok := scalarText(value)
	if _, isBool := value.(bool); !ok || isBool {
		return
	}
	if decoded, err := base64.StdEncoding.DecodeString(text); err == nil && l.inText(string(decoded), path) {
		return
	}
	l.inText(text, path)
}

// inText looks for values in a text, and reports whether there are some.
func (l *locator) inText(text, path string) bool {
	if i, ok := l.whole[text]; ok {
		l.add(i, path, "")
		return true
	}
	parts := strings.Split(l.marks.Replace(text), mark)
	if len(parts) == 1 || strings.Contains(text, mark) {
		return false
	}
	line := ""
	for i, part := range parts {
		if i%2 == 0 {
			line += part
			line = line[strings.LastIndex(line, "\n")+1:]
			continue
		}
		if index, err := strconv.Atoi(part); err == nil {
			l.add(index, path, line)
		}
		line += "*"
	}
	return true
}

// unmarked returns a text with a star for each value.
func (l *locator) unmarked(text string) string {
	parts := strings.Split(l.marks.Replace(text), mark)
	for i := 1; i < len(parts); i += 2 {
		parts[i] = "*"
	}
	return strings.Join(parts, "")
}

// add adds a place to a call, and to all calls with an equal value. A value in the name of an object or a field doesn't
// make it another one.
func (l *locator) add(index int, path, before string) {
	word := ""
	if found := firstWord.FindStringSubmatch(before); found != nil {
		word = found[1]
	}
	path, before = l.unmarked(path), before[max(0, len(before)-beforeValue):]
	// Not the arguments: they may be values themselves, of which more than one is tried.
	function, _, _ := strings.Cut(l.calls[index].key, "/")
	exact, rough := l.place(function, "exact", path, before), l.place(function, "rough", path, word)
	for _, c := range l.same[l.calls[index].text] {
		c.exact, c.rough = append(c.exact, exact), append(c.rough, rough)
	}
}

// place returns a token. A number in it counts those that would be the same.
func (l *locator) place(parts ...string) string {
	at := strings.Join(parts, mark)
	l.found[at]++
	return token(at, strconv.Itoa(l.found[at]))
}

// arguments deals with values that came out nowhere, but are arguments of other calls. It gives
// them the places of those calls: a password may be there as a hash only, a CA in what it
// signed.
func (l *locator) arguments() {
	for _, by := range slices.Backward(l.calls) {
		parts := strings.Split(l.marks.Replace(by.args), mark)
		for i := 1; i < len(parts); i += 2 {
			index, err := strconv.Atoi(parts[i])
			if err != nil || index < 0 || index >= len(l.calls) || len(l.calls[index].exact) > 0 && !l.calls[index].inOthers {
				continue
			}
			for _, c := range l.same[l.calls[index].text] {
				c.inOthers = true
				for _, place := range by.exact {
					c.exact = append(c.exact, token("argument", place))
				}
				for _, place := range by.rough {
					c.rough = append(c.rough, token("argument", place))
				}
			}
		}
	}
}

// hidden deals with values that came out in no known form. It gives them the places of their
// templates, and of the release: their numbers among such values.
func (l *locator) hidden() {
	for _, c := range l.calls {
		if len(c.exact) == 0 {
			c.exact, c.rough = []string{l.place(c.key, "template", c.template)}, []string{l.place(c.key, "release")}
		}
	}
}
