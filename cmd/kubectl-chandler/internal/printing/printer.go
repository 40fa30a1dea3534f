// SPDX-License-Identifier: Apache-2.0

// Package printing writes summaries for people, in ASCII and mostly within 120 columns.
package printing

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/template"
	"time"
	"unicode"

	"github.com/mitchellh/go-wordwrap"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/printers"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/cmd/kubectl-chandler/internal/summary"
	"github.com/cluster-chandler/chandler/internal/message"
	"github.com/cluster-chandler/chandler/internal/observed"
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

// Write writes one of the pages.
func (p *Printer) Write(page string, of any) error {
	t := template.New("")
	t.Funcs(template.FuncMap{
		"red": p.color("31"), "green": p.color("32"), "yellow": p.color("33"), // of ANSI terminals
		"wide": func() bool { return p.Wide }, "age": p.age, "names": p.names, "versions": p.versions, "states": p.states,
		"branches": branches, "clusters": clusters, "concat": slices.Concat[[]summary.Cause], "clean": clean,
		"number": number, "paragraph": paragraph, "join": strings.Join, "lower": strings.ToLower, "upper": strings.ToUpper, "trim": strings.TrimSpace,
		"shorten": func(text string, limit int) string { return clean(message.Shorten(text, limit)) },
		"since":   func(t metav1.MicroTime) *metav1.Time { return &metav1.Time{Time: t.Time} },
		"seen":    func(e *eventsv1.Event) string { return observed.LastSeen(e).UTC().Format("2006-01-02 15:04:05Z") },
		"rolledOut": func(s *addonsv1.AddonStack) *metav1.Condition {
			return meta.FindStatusCondition(s.Status.Conditions, addonsv1.RolledOutCondition)
		},
		"table": func(rows string, of any) (string, error) {
			text := &strings.Builder{}
			w := printers.GetNewTabWriter(text)
			err := t.ExecuteTemplate(w, rows, of)
			_ = w.Flush() // it is memory
			return clean(text.String()), err
		},
	})
	return template.Must(t.Parse(pages)).ExecuteTemplate(p.Out, page, of)
}

// color returns a function that puts a text in a color, for a terminal that shows colors.
func (p *Printer) color(code string) func(string) string {
	if p.Color {
		return func(text string) string { return "\x1b[" + code + "m" + text + "\x1b[0m" }
	}
	return func(text string) string { return text }
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
func number(n any, noun string) string {
	if fmt.Sprint(n) != "1" {
		noun += "s"
	}
	return fmt.Sprint(n, " ", noun)
}

// paragraph returns a text in lines that begin at a column; "" for none. Only the first one has the label.
func paragraph(label string, column int, text string) string {
	words := strings.Join(strings.Fields(clean(text)), " ")
	if words == "" {
		return ""
	}
	lines := &strings.Builder{}
	for line := range strings.SplitSeq(wordwrap.WrapString(words, uint(width-column)), "\n") {
		fmt.Fprintf(lines, "%-*s%s\n", column, label, line)
		label = ""
	}
	return lines.String()
}
