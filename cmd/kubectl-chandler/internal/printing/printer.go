// SPDX-License-Identifier: Apache-2.0

// Package printing writes summaries for people, in ASCII and mostly within 120 columns.
package printing

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"

	"github.com/mitchellh/go-wordwrap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/cluster-chandler/chandler/internal/message"
)

// Printer writes to one output.
type Printer struct {
	Out io.Writer
	// Color says that the output is a terminal which shows colors. Wide names all clusters.
	Color, Wide bool
	Now         time.Time
}

const (
	width = 120
	// few clusters are named, unless all are to be.
	few = 5
)

// Colors of ANSI terminals.
const (
	red    = "31"
	green  = "32"
	yellow = "33"
)

func (p *Printer) color(code, text string) string {
	if !p.Color {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (p *Printer) printf(format string, args ...any) { fmt.Fprintf(p.Out, format, args...) }

// table writes rows below a header; nothing without rows.
func (p *Printer) table(header string, rows [][]any) {
	if len(rows) == 0 {
		return
	}
	w := printers.GetNewTabWriter(p.Out)
	fmt.Fprintln(w, strings.ReplaceAll(header, " ", "\t"))
	for _, row := range rows {
		fmt.Fprintln(w, clean(fmt.Sprintf("%v"+strings.Repeat("\t%v", len(row)-1), row...)))
	}
	_ = w.Flush() // as all else that is printed
}

// clean returns a text without what a terminal acts on: charts and workload clusters have their words in messages.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\t' && r != '\n' {
			return '?'
		}
		return r
	}, text)
}

// age returns how long ago a time was, "-" if it isn't known.
func (p *Printer) age(t *metav1.Time) string {
	if t.IsZero() {
		return "-"
	}
	return duration.HumanDuration(p.Now.Sub(t.Time))
}

// names returns the first few names, or all of them.
func (p *Printer) names(all []string) string {
	if p.Wide {
		return strings.Join(all, ", ")
	}
	return message.List(all, ", ", few)
}

// number returns a number with its noun, as in "2 clusters".
func number[N int | int32 | int64](n N, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

// paragraph writes a text whose lines begin at a column. Only the first one has the label.
func (p *Printer) paragraph(label string, column int, text string) {
	words := strings.Join(strings.Fields(clean(text)), " ")
	if words == "" {
		return
	}
	for line := range strings.SplitSeq(wordwrap.WrapString(words, uint(width-column)), "\n") {
		p.printf("%-*s%s\n", column, label, line)
		label = ""
	}
}
