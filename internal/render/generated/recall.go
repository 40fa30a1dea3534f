// SPDX-License-Identifier: Apache-2.0

package generated

import (
	"encoding/hex"
	"strconv"
	"strings"
)

// recall returns the value for a call, if there is one. It is the one that the round before
// decided on, or else a guess. The method again evaluates that by where it comes out.
func (g *Generator) recall(c *call, password bool) (string, bool) {
	if value, ok := g.decided[c.id()]; ok && (value == nil || value.fits(c.evaluate)) {
		c.from = value
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

func (g *Generator) guess(c *call, password bool) *previousValue {
	g.learnNumbered(c, password)
	var guessed *previousValue
	for _, value := range g.previous[c.key] {
		switch {
		case !value.fits(c.evaluate), g.given[value], g.due(value):
		case value.position == c.position && value.unused == 0:
			return value
		case guessed == nil:
			guessed = value
		}
	}
	return guessed
}

// learnNumbered looks for the value of a call under the key that earlier releases gave it.
func (g *Generator) learnNumbered(c *call, password bool) {
	if len(g.earlier) == 0 || len(g.previous[c.key]) >= c.number {
		return
	}
	name, _, _ := strings.Cut(c.key, "/")
	key := name + "/" + hex.EncodeToString(hashCall(name+c.args+"#"+strconv.Itoa(c.number), password))
	if text, ok := g.earlier[key]; ok {
		g.previous[c.key] = append(g.previous[c.key], &previousValue{call: c.key, text: text, position: c.position})
	}
}

// due reports whether a certificate is to be made again. A certificate that was read from a live object is taken
// over first, as it is; the next revision renews it.
func (g *Generator) due(value *previousValue) bool {
	at := renewAt(value.text)
	return !value.fromCluster && !at.IsZero() && !g.clock().Before(at)
}
