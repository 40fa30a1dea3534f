// SPDX-License-Identifier: Apache-2.0

package keptvalues

// recall returns the value for a call, if there is one. It is the one that the round before
// decided on, or else a guess. The method again evaluates that by where it comes out.
func (g *Generator) recall(c *call) (string, bool) {
	if value, ok := g.decided[c.id()]; ok && (value == nil || value.fits(c.evaluate)) {
		c.from = value
	} else {
		c.from = g.guess(c)
	}
	if c.from != nil {
		g.given[c.from] = true
		return c.from.text, true
	}
	text, ok := g.made[c.id()]
	return text, ok
}

func (g *Generator) guess(c *call) *previousValue {
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

// due reports whether a certificate is to be made again. A certificate that was read from a live object is taken
// over first, as it is; the next revision renews it.
func (g *Generator) due(value *previousValue) bool {
	at := renewAt(value.text)
	return !value.fromCluster && !at.IsZero() && !g.clock().Before(at)
}
