// SPDX-License-Identifier: Apache-2.0

package keptvalues

import (
	"maps"
	"reflect"
	"slices"

	"github.com/cluster-chandler/chandler/internal/render/manifest"
)

// maxRounds bounds the rounds of one rendering. A value that others are made of takes one round
// more: a key, the CA that it is for, and a certificate of that CA take four.
const maxRounds = 6

// RenderUntilStable renders until each value is where it was. Odd values are kept if they come out in the data of
// the release's Secrets alone: who can write its record can write those, too. Otherwise none is.
func (g *Generator) RenderUntilStable(round func() ([]manifest.Document, error), namespace string) ([]manifest.Document, error) {
	documents, err := g.repeat(round, namespace)
	isOdd := func(value *previousValue) bool { return value.verdict == odd }
	if !slices.ContainsFunc(slices.Collect(maps.Keys(g.given)), isOdd) {
		return documents, err
	}
	refused := g.refuseOdd()
	others, otherErr := g.renderAside(round)
	if err == nil && otherErr == nil && reflect.DeepEqual(withoutSecrets(documents, namespace), withoutSecrets(others, namespace)) {
		for _, value := range refused {
			value.verdict = odd
		}
		return documents, nil
	}
	return g.repeat(round, namespace)
}

// renderAside renders one round, of which the generator keeps nothing but what it made.
func (g *Generator) renderAside(round func() ([]manifest.Document, error)) ([]manifest.Document, error) {
	kept := *g
	defer func() { *g = kept }()
	g.restart()
	return round()
}

// repeat renders in rounds until each value is where it was.
func (g *Generator) repeat(round func() ([]manifest.Document, error), namespace string) (documents []manifest.Document, err error) {
	for again := true; again; again = g.again(documents, namespace) {
		g.restart()
		if documents, err = round(); err != nil {
			return nil, err
		}
	}
	return documents, nil
}

// again evaluates a round by where its values came out: each is to come out where it did before. It
// reports whether another round is needed for that. The values of some calls
// are in the arguments of others, so that one more round may not be the last.
func (g *Generator) again(documents []manifest.Document, namespace string) bool {
	if len(g.calls) == 0 {
		return false
	}
	locate(g.calls, documents, namespace)
	byKey := map[string][]*call{}
	for _, c := range g.calls {
		byKey[c.key] = append(byKey[c.key], c)
	}
	stable := true
	for key, calls := range byKey {
		decided := g.decide(calls, g.previous[key])
		for _, c := range calls {
			stable = stable && decided[c] == c.from
			g.decided[c.id()] = decided[c]
		}
	}
	g.rounds++
	return !stable && g.rounds < maxRounds
}

// decide returns the previous value for each of some calls with equal arguments. A call at one of a
// value's exact places counts most. A value whose exact places have gone may be at a rough one: the text
// before it changed. A value without places is at its position.
func (g *Generator) decide(calls []*call, values []*previousValue) map[*call]*previousValue {
	values = slices.DeleteFunc(slices.Clone(values), func(value *previousValue) bool { return !value.fits(calls[0].evaluate) || g.due(value) })
	decided, taken := map[*call]*previousValue{}, map[*previousValue]bool{}
	for _, score := range []func(*call, *previousValue) int{
		func(c *call, value *previousValue) int { return shared(c.exact, value.exact) },
		func(c *call, value *previousValue) int { return shared(c.rough, value.rough) },
		func(c *call, value *previousValue) int {
			if len(value.exact) > 0 || value.unused > 0 {
				return 0
			}
			return shared([]string{c.position}, []string{value.position})
		},
	} {
		for _, c := range calls {
			if decided[c] != nil {
				continue
			}
			best := 0
			for _, value := range values {
				if n := score(c, value); n > best && !taken[value] {
					best, decided[c] = n, value
				}
			}
		}
		for _, value := range decided {
			taken[value] = true
		}
	}
	return decided
}

func shared(a, b []string) (n int) {
	for _, place := range a {
		if slices.Contains(b, place) {
			n++
		}
	}
	return n
}
