// SPDX-License-Identifier: Apache-2.0

package render

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/cluster-chandler/chandler/internal/message"
)

// maxLost are the fields that one message names.
const maxLost = 3

// takeOver gives calls the values that the live objects of a Helm release have where theirs would come
// out: what its chart generated is written nowhere else. Then it refuses to change a field that depends
// on a value that can't be read from one, as of a hash, unless such values are to be made again. Annotations don't count: they are
// made to change with what is in other objects.
func (g *generator) takeOver(documents []document, liveObjects []*unstructured.Unstructured, namespace string, renewLost bool, round func() ([]document, error)) ([]document, error) {
	var err error
	live := leavesByIdentity(liveObjects, namespace)
	for range maxRounds {
		if !g.learnFrom(documents, live, namespace) {
			break
		}
		if documents, err = g.settle(round, namespace); err != nil {
			return nil, err
		}
	}
	if !g.madeSome() || renewLost {
		return documents, nil
	}
	// What differs when all that was made is made anew depends on it.
	kept := *g
	g.made = map[string]string{nowKey: kept.made[nowKey]}
	g.restart()
	others, err := round()
	if err != nil {
		return nil, err
	}
	*g = kept
	other := leavesByIdentity(objectsOf(others), namespace)
	var lost []string
	for _, o := range objectsOf(documents) {
		was, again, is := live[identity(o, namespace)], other[identity(o, namespace)], leavesOf(o)
		for _, path := range slices.Sorted(maps.Keys(was)) {
			value, wanted := is[path]
			if wanted && value != was[path] && value != again[path] && !strings.Contains(path, ".metadata.annotations.") {
				lost = append(lost, fmt.Sprintf("%s %s: %s", o.GetKind(), o.GetName(), path[1:]))
			}
		}
	}
	if len(lost) > 0 {
		return nil, failf(ReasonGeneratedValuesLost, "the chart generates fields anew whose values in the Helm release can't be taken over: %s; set these values in the add-on's values, or have just them made again with generatedValuesPolicy: Renew",
			message.List(lost, "; ", maxLost))
	}
	return documents, nil
}

// madeSome reports whether the last round made values.
func (g *generator) madeSome() bool {
	return slices.ContainsFunc(g.calls, func(c *call) bool { return c.from == nil })
}

// learnFrom reads the values of calls from live objects, and reports whether there were some.
func (g *generator) learnFrom(documents []document, live map[string]map[string]string, namespace string) bool {
	var pairs []string
	for i, c := range g.calls {
		for j, part := range partsOf(c.text) {
			if part = strings.TrimSpace(part); c.from == nil && len(part) >= shortestWhole {
				pairs = append(pairs, part, fmt.Sprint(mark, i, ".", j, mark))
			}
		}
	}
	marks, found := strings.NewReplacer(pairs...), map[string]string{}
	for _, o := range objectsOf(documents) {
		was := live[identity(o, namespace)]
		for path, text := range leavesOf(o) {
			if is, ok := was[path]; ok {
				matchMarks(marks.Replace(text), is, found)
			}
		}
	}
	learned := false
	for i, c := range g.calls {
		text := found[fmt.Sprint(i, ".0")]
		ok := text != ""
		if key := found[fmt.Sprint(i, ".1")]; len(partsOf(c.text)) == 2 {
			data, err := json.Marshal(map[string]string{"Cert": text + "\n", "Key": key + "\n"})
			text, ok = string(data), ok && key != "" && err == nil
		}
		refused := slices.ContainsFunc(g.formers[c.key], func(f *former) bool { return f.live && f.broken && f.text == text })
		if ok && c.from == nil && !refused {
			g.formers[c.key] = append(g.formers[c.key], &former{call: c.key, text: text, position: c.position, numbered: true, live: true})
			delete(g.decided, c.id())
			learned = true
		}
	}
	return learned
}

// matchMarks notes what a text has where another one has marks, if all else in both is equal.
func matchMarks(marked, text string, found map[string]string) {
	parts := strings.Split(marked, mark)
	rest, ok := strings.CutPrefix(text, parts[0])
	values := map[string]string{}
	for i := 1; i < len(parts) && ok; i += 2 {
		var value string
		if literal := parts[i+1]; i+2 == len(parts) {
			value, ok = strings.CutSuffix(rest, literal)
		} else {
			value, rest, ok = strings.Cut(rest, literal)
			ok = ok && literal != ""
		}
		if other, again := values[parts[i]]; again && other != value || value == "" {
			ok = false
		}
		values[parts[i]] = value
	}
	for key, value := range values {
		if other, again := found[key]; ok && again && other != value {
			value = "" // nobody knows which one counts
		}
		if ok {
			found[key] = value
		}
	}
}

func objectsOf(documents []document) (all []*unstructured.Unstructured) {
	for _, doc := range documents {
		if doc.object == nil {
			continue
		}
		items, isList := doc.object.Object["items"].([]any)
		if !isList || !strings.HasSuffix(doc.kind(), "List") {
			all = append(all, doc.object)
		}
		for _, item := range items {
			if content, ok := item.(map[string]any); ok && isList {
				all = append(all, &unstructured.Unstructured{Object: content})
			}
		}
	}
	return all
}

func leavesByIdentity(objects []*unstructured.Unstructured, namespace string) map[string]map[string]string {
	all := map[string]map[string]string{}
	for _, o := range objects {
		all[identity(o, namespace)] = leavesOf(o)
	}
	return all
}

// leavesOf are the fields of an object by their paths, with what Secrets have as plain text.
func leavesOf(o *unstructured.Unstructured) map[string]string {
	leaves := map[string]string{}
	var walk func(path string, value any)
	walk = func(path string, value any) {
		switch value := value.(type) {
		case map[string]any:
			for key, v := range value {
				walk(path+"."+key, v)
			}
		case []any:
			for i, v := range value {
				walk(path+"["+strconv.Itoa(i)+"]", v)
			}
		case nil:
		default:
			leaves[path] = fmt.Sprint(value)
		}
	}
	walk("", o.Object)
	if o.GetKind() != "Secret" || o.GetAPIVersion() != "v1" {
		return leaves
	}
	for path, text := range maps.Clone(leaves) {
		if key, is := strings.CutPrefix(path, ".stringData."); is {
			leaves[".data."+key] = text
		} else if plain, err := base64.StdEncoding.DecodeString(text); err == nil && strings.HasPrefix(path, ".data.") && leaves[".stringData."+path[len(".data."):]] == "" {
			leaves[path] = string(plain)
		}
	}
	return leaves
}
