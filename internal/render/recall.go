// SPDX-License-Identifier: Apache-2.0

package render

import (
	"cmp"
	"encoding/hex"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// maxRounds bounds the rounds of one rendering. A value that others are made of takes one round
// more: a key, the CA that it is for, and a certificate of that CA take four.
const maxRounds = 6

// maxUnused bounds the values that are kept of calls that aren't made any more, in bytes with
// their keys: a component that is switched off may be switched on again.
const maxUnused = 64 << 10

// former is a value of an earlier rendering. Its key in [Generated] has six parts with slashes
// between them. They are the function, the hash of its arguments, the number of renderings since
// the value was used last, the call's position, and its exact and rough places. The keys of
// earlier releases had two parts: the hash was of the call's number, too.
type former struct {
	call     string // its key
	text     string
	unused   int
	position string
	places
	numbered bool // its key was that of an earlier release
	live     bool // it was read from a live object
	judged   bool // by its first call
	odd      bool // it isn't what the function returns, but may be a person's
	broken   bool // it is nothing to return
}

func parseFormer(key, text string) (*former, bool) {
	parts := strings.Split(key, "/")
	if len(parts) != 6 {
		return nil, false
	}
	unused, err := strconv.ParseUint(parts[2], 10, 31)
	list := func(joined string) []string {
		return strings.FieldsFunc(joined, func(r rune) bool { return r == ',' })
	}
	f := &former{
		call: parts[0] + "/" + parts[1], text: text, unused: int(unused), position: parts[3],
		places: places{exact: list(parts[4]), rough: list(parts[5])},
	}
	return f, err == nil && len(f.exact) <= maxPlaces && len(f.rough) <= maxPlaces
}

func (f *former) key() string {
	return strings.Join([]string{f.call, strconv.Itoa(f.unused), f.position, strings.Join(f.exact, ","), strings.Join(f.rough, ",")}, "/")
}

func formersOf(earlier Generated) map[string][]*former {
	all := map[string][]*former{}
	for _, key := range slices.Sorted(maps.Keys(earlier)) {
		if f, ok := parseFormer(key, earlier[key]); ok {
			all[f.call] = append(all[f.call], f)
		}
	}
	return all
}

// recall returns the value for a call, if there is one. It is the one that the round before
// decided on, or else a guess. The method again judges that by where it comes out.
func (g *generator) recall(c *call, password bool) (string, bool) {
	if f, ok := g.decided[c.id()]; ok && (f == nil || f.fits(c.judge)) {
		c.from = f
	} else {
		c.from = g.guess(c, password)
	}
	if c.from != nil {
		g.given[c.from] = true
		return c.from.text, true
	}
	text, ok := g.made[c.id()]
	return text, ok
}

func (g *generator) guess(c *call, password bool) *former {
	g.learnNumbered(c, password)
	var guessed *former
	for _, f := range g.formers[c.key] {
		switch {
		case !f.fits(c.judge), g.given[f], g.due(f):
		case f.position == c.position && f.unused == 0:
			return f
		case guessed == nil:
			guessed = f
		}
	}
	return guessed
}

// learnNumbered looks for the value of a call under the key that earlier releases gave it.
func (g *generator) learnNumbered(c *call, password bool) {
	if len(g.earlier) == 0 || len(g.formers[c.key]) >= c.number {
		return
	}
	name, _, _ := strings.Cut(c.key, "/")
	key := name + "/" + hex.EncodeToString(hashCall(name+c.args+"#"+strconv.Itoa(c.number), password))
	if text, ok := g.earlier[key]; ok {
		g.formers[c.key] = append(g.formers[c.key], &former{call: c.key, text: text, position: c.position, numbered: true})
	}
}

// fits reports whether a call may get the value. All calls with its key have the same arguments.
func (f *former) fits(judge func(text string) (string, verdict)) bool {
	if !f.judged {
		var v verdict
		f.text, v = judge(f.text)
		f.judged, f.odd, f.broken = true, v == odd, v == unfit
	}
	return !f.broken
}

// repeat renders in rounds until each value is where it was.
func (g *generator) repeat(round func() ([]document, error), namespace string) (documents []document, err error) {
	for again := true; again; again = g.again(documents, namespace) {
		g.restart()
		if documents, err = round(); err != nil {
			return nil, err
		}
	}
	return documents, nil
}

// again judges a round by where its values came out: each is to come out where it did before. It
// reports whether another round is needed for that. The values of some calls
// are in the arguments of others, so that one more round may not be the last.
func (g *generator) again(documents []document, namespace string) bool {
	if len(g.calls) == 0 {
		return false
	}
	locate(g.calls, documents, namespace)
	byKey := map[string][]*call{}
	for _, c := range g.calls {
		byKey[c.key] = append(byKey[c.key], c)
	}
	settled := true
	for key, calls := range byKey {
		decided := g.decide(calls, g.formers[key])
		for _, c := range calls {
			settled = settled && decided[c] == c.from
			g.decided[c.id()] = decided[c]
		}
	}
	g.rounds++
	return !settled && g.rounds < maxRounds
}

// decide returns the former value that each of some calls with equal arguments gets. A call at one of a
// value's exact places counts most. A value whose exact places have gone may be at a rough one: the text
// before it changed. It isn't if it was switched off before: others may be there now.
func (g *generator) decide(calls []*call, formers []*former) map[*call]*former {
	formers = slices.DeleteFunc(slices.Clone(formers), func(f *former) bool { return !f.fits(calls[0].judge) || g.due(f) })
	decided, taken := map[*call]*former{}, map[*former]bool{}
	for _, score := range []func(*call, *former) int{
		func(c *call, f *former) int { return shared(c.exact, f.exact) },
		func(c *call, f *former) int { return truth(f.unused == 0) * shared(c.rough, f.rough) },
		func(c *call, f *former) int { return truth(f.numbered && f.position == c.position) },
	} {
		for _, c := range calls {
			if decided[c] != nil {
				continue
			}
			best := 0
			for _, f := range formers {
				if n := score(c, f); n > best && !taken[f] {
					best, decided[c] = n, f
				}
			}
		}
		for _, f := range decided {
			taken[f] = true
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

// used returns the values of the last round, and those of former calls as far as there is room.
func (g *generator) used() Generated {
	all := Generated{}
	if g.time != "" {
		all[nowKey] = g.time
	}
	room, inUse := g.room, map[*former]bool{}
	for _, c := range g.calls {
		inUse[c.from] = true
		f := former{call: c.key, position: c.position, places: c.places}
		if room -= len(f.key()) - len(c.key); room < 0 {
			f.places = places{}
		}
		all[f.key()] = c.text
	}
	var unused []*former
	for _, formers := range g.formers {
		for _, f := range formers {
			if !inUse[f] && !f.broken && !g.due(f) {
				unused = append(unused, f)
			}
		}
	}
	slices.SortFunc(unused, func(a, b *former) int { return cmp.Or(a.unused-b.unused, strings.Compare(a.key(), b.key())) })
	room = min(maxUnused, room)
	for _, f := range unused {
		kept := *f
		kept.unused++
		if room -= len(kept.key()) + len(kept.text); room < 0 {
			break
		}
		all[kept.key()] = kept.text
	}
	return all
}
