// SPDX-License-Identifier: Apache-2.0

package keptvalues

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/message"
	"github.com/cluster-chandler/chandler/internal/render/job"
	"github.com/cluster-chandler/chandler/internal/render/manifest"
)

// maxLost are the fields that one message names.
const maxLost = 3

// TakeOver gives calls the values that the live objects of a Helm release have where theirs would come
// out: what its chart generated is written nowhere else. Then it refuses to change a field that depends
// on a value that can't be read from one, as of a hash, unless such values are to be made again. Annotations don't count: they are
// made to change with other objects.
func (g *Generator) TakeOver(documents []manifest.Document, liveObjects []*unstructured.Unstructured, namespace string, renewLost bool, round func() ([]manifest.Document, error)) ([]manifest.Document, error) {
	var err error
	live := leavesByIdentity(liveObjects, namespace)
	for range maxRounds {
		if !g.learnFrom(documents, live, namespace) {
			break
		}
		if documents, err = g.RenderUntilStable(round, namespace); err != nil {
			return nil, err
		}
	}
	if !g.MadeSome() || renewLost {
		return documents, nil
	}
	// A field that differs once all these values are made again depends on them.
	made := g.made
	g.made = map[string]string{job.NowKey: made[job.NowKey]}
	others, err := g.renderAside(round)
	if g.made = made; err != nil {
		return nil, err
	}
	other := leavesByIdentity(manifest.ObjectsOf(others), namespace)
	var lost []string
	for _, o := range manifest.ObjectsOf(documents) {
		was, again, is := live[manifest.Identity(o, namespace)], other[manifest.Identity(o, namespace)], leavesOf(o)
		for _, path := range slices.Sorted(maps.Keys(was)) {
			value, wanted := is[path]
			if wanted && value != was[path] && value != again[path] && !strings.Contains(path, ".metadata.annotations.") {
				lost = append(lost, fmt.Sprintf("%s %s: %s", o.GetKind(), o.GetName(), path[1:]))
			}
		}
	}
	if len(lost) > 0 {
		return nil, failure.New(job.ReasonGeneratedValuesLost, "the chart generates fields again whose values in the Helm release can't be taken over: %s; set these values in the add-on's values, or have just them made again with generatedValuesPolicy: Renew",
			message.List(lost, "; ", maxLost))
	}
	return documents, nil
}

// learnFrom reads the values of calls from live objects, and reports whether there were some.
func (g *Generator) learnFrom(documents []manifest.Document, live map[string]map[string]string, namespace string) bool {
	var pairs []string
	for i, c := range g.calls {
		for j, part := range partsOf(c.text) {
			if part = strings.TrimSpace(part); c.from == nil && len(part) >= shortestWhole {
				pairs = append(pairs, part, fmt.Sprint(mark, i, ".", j, mark))
			}
		}
	}
	marks, found := strings.NewReplacer(pairs...), map[string]string{}
	for _, o := range manifest.ObjectsOf(documents) {
		was := live[manifest.Identity(o, namespace)]
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
		refused := slices.ContainsFunc(g.previous[c.key], func(value *previousValue) bool {
			return value.fromCluster && value.verdict == unfit && value.text == text
		})
		if ok && c.from == nil && !refused {
			g.previous[c.key] = append(g.previous[c.key], &previousValue{call: c.key, text: text, position: c.position, fromCluster: true})
			delete(g.decided, c.id())
			learned = true
		}
	}
	return learned
}

// matchMarks adds to found the parts of a text at the marks of another one, if all else in both is equal.
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
