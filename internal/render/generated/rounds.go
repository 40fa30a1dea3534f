// SPDX-License-Identifier: Apache-2.0

package generated

import (
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
	given := false
	for value := range g.given {
		given = given || value.odd
	}
	if !given {
		return documents, err
	}
	kept, refused := *g, g.refuseOdd()
	g.restart()
	others, otherErr := round()
	if err == nil && otherErr == nil && reflect.DeepEqual(withoutSecrets(documents, namespace), withoutSecrets(others, namespace)) {
		for _, value := range refused {
			value.unusable = false
		}
		*g = kept
		return documents, nil
	}
	return g.repeat(round, namespace)
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
// before it changed. It isn't if it was switched off before: others may be there now.
func (g *Generator) decide(calls []*call, values []*previousValue) map[*call]*previousValue {
	values = slices.DeleteFunc(slices.Clone(values), func(value *previousValue) bool { return !value.fits(calls[0].evaluate) || g.due(value) })
	decided, taken := map[*call]*previousValue{}, map[*previousValue]bool{}
	for _, score := range []func(*call, *previousValue) int{
		func(c *call, value *previousValue) int { return shared(c.exact, value.exact) },
		func(c *call, value *previousValue) int {
			return truth(value.unused == 0) * shared(c.rough, value.rough)
		},
		func(c *call, value *previousValue) int {
			return truth(value.byPosition && value.position == c.position)
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
		n += truth(slices.Contains(b, place))
	}
	return n
}

func truth(holds bool) int {
	if holds {
		return 1
	}
	return 0
}
