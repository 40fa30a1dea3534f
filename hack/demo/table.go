// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// Widths of the columns. A phase and a version fit into an add-on's.
const (
	clusterColumn = 10
	countColumn   = 6
	addonColumn   = 20
	elapsedColumn = 8
)

// table shows a race: in place on a terminal that is wide enough, else a line for each change.
type table struct {
	screen  *screen
	race    *race
	inPlace bool
	drawn   int               // lines on the terminal
	printed map[string]string // last line of each cluster, without the time
}

func newTable(s *screen, r *race) *table {
	width := 2 + clusterColumn + countColumn + len(r.wanted)*addonColumn + elapsedColumn
	t := &table{screen: s, race: r, inPlace: s.terminal && s.width() > width, printed: map[string]string{}}
	s.printf("%s\n", s.paint(dim, t.header()))
	return t
}

func (t *table) draw() {
	var b strings.Builder
	if t.inPlace && t.drawn > 0 {
		fmt.Fprintf(&b, "\x1b[%dA\r\x1b[J", t.drawn)
	}
	t.drawn = 0
	for _, one := range t.race.runners {
		line := t.line(one)
		if !t.inPlace && (!one.started() || t.printed[one.cluster] == line) {
			continue
		}
		t.printed[one.cluster] = line
		b.WriteString(line + t.screen.paint(dim, seconds(t.race.elapsed(one))) + "\n")
		t.drawn++
		for _, trouble := range t.troubles(one) {
			b.WriteString(trouble + "\n")
			t.drawn++
		}
	}
	t.screen.printf("%s", b.String())
}

func (t *table) header() string {
	line := fmt.Sprintf("  %-*s%-*s", clusterColumn, "CLUSTER", countColumn, "READY")
	for _, w := range t.race.wanted {
		line += fmt.Sprintf("%-*s", addonColumn, strings.ToUpper(w.name))
	}
	return line + fmt.Sprintf("%*s", elapsedColumn, "ELAPSED")
}

func (t *table) line(o *runner) string {
	count, style := "-", yellow
	if o.seen != nil && o.seen.Status.ReadyAddons != "" {
		count = o.seen.Status.ReadyAddons
	}
	if o.arrived > 0 {
		style = green
	}
	line := fmt.Sprintf("  %-*s", clusterColumn, o.cluster) + t.screen.paint(style, fmt.Sprintf("%-*s", countColumn, count))
	for _, w := range t.race.wanted {
		line += t.cell(o.addon(w.name))
	}
	return line
}

func (t *table) cell(status *addonsv1.AddonStatus) string {
	if status == nil {
		return t.screen.paint(dim, fmt.Sprintf("%-*s", addonColumn, "-"))
	}
	text := fmt.Sprintf("%-*s", addonColumn, shorten(describe(status), addonColumn-1))
	switch status.Phase {
	case addonsv1.AddonReady:
		return t.screen.paint(green, text)
	case addonsv1.AddonFailed:
		return t.screen.paint(red, text)
	case addonsv1.AddonPending:
		return t.screen.paint(dim, text)
	default:
		return t.screen.paint(yellow, text)
	}
}

// troubles say why add-ons failed, below their cluster.
func (t *table) troubles(o *runner) []string {
	var lines []string
	for _, w := range t.race.wanted {
		if status := o.addon(w.name); status != nil && status.Phase == addonsv1.AddonFailed {
			text := shorten(fmt.Sprintf("    %s: %s", w.name, explain(status)), t.screen.width()-1)
			lines = append(lines, t.screen.paint(red, text))
		}
	}
	return lines
}

// shorten cuts a text to a number of characters.
func shorten(text string, limit int) string {
	runes := []rune(text)
	if len(runes) <= limit {
		return text
	}
	return string(runes[:max(0, limit-1)]) + "…"
}
