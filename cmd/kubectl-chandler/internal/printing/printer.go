// SPDX-License-Identifier: Apache-2.0

// Package printing writes summaries for people, in ASCII and mostly within 120 columns.
package printing

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"text/template"
	"time"
	"unicode"
	"unicode/utf16"

	"github.com/mitchellh/go-wordwrap"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/cli-runtime/pkg/printers"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/cmd/kubectl-chandler/internal/summary"
	"github.com/cluster-chandler/chandler/internal/message"
	"github.com/cluster-chandler/chandler/internal/observed"
	"github.com/cluster-chandler/chandler/internal/plan"
	"github.com/cluster-chandler/chandler/internal/render/values"
	"github.com/cluster-chandler/chandler/internal/rollout"
	"github.com/cluster-chandler/chandler/internal/stack"
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
	// mostCauses are shown in a status, unless all are to be.
	mostCauses = 20
	// mostOfValue is how much of a value is shown, in bytes, unless all is to be.
	mostOfValue = 48
)

// pages are what people see, by the name of the page. Parts that several of them have begin with a small letter.
//
//go:embed pages.tmpl
var pages string

// words are the second and later ones of a phase.
var words = regexp.MustCompile(`\B([A-Z])`)

// Write writes one of the pages.
func (p *Printer) Write(page string, of any) error {
	t := template.New("")
	t.Funcs(template.FuncMap{
		"red": p.color("31"), "green": p.color("32"), "yellow": p.color("33"), // of ANSI terminals
		"wide": func() bool { return p.Wide }, "age": p.age, "names": p.names, "three": p.three, "room": p.room, "versions": p.versions, "states": p.states,
		"named": p.named, "value": p.Value, "places": Places, "state": p.state,
		"branches": branches, "clusters": clusters, "concat": slices.Concat[[]summary.Cause], "clean": Clean,
		"number": Number, "paragraph": paragraph, "join": strings.Join, "lower": strings.ToLower, "trim": strings.TrimSpace,
		"shorten": func(text string, limit int) string { return Clean(message.Shorten(text, limit)) },
		"phase": func(phase addonsv1.RolloutPhase) string {
			return strings.ToLower(words.ReplaceAllString(string(phase), " $1"))
		},
		"sign":   func(action addonsv1.PlanAction) string { return cmp.Or(signs[action], "?") },
		"since":  func(t metav1.MicroTime) *metav1.Time { return &metav1.Time{Time: t.Time} },
		"stands": func(m rollout.Member) *metav1.Time { return &metav1.Time{Time: m.StandsSince()} },
		"seen":   func(e *eventsv1.Event) string { return observed.LastSeen(e).UTC().Format("2006-01-02 15:04:05Z") },
		"rolledOut": func(s *addonsv1.AddonStack) *metav1.Condition {
			return meta.FindStatusCondition(s.Status.Conditions, addonsv1.RolledOutCondition)
		},
		"table": func(rows string, of any) (string, error) {
			text := &strings.Builder{}
			w := printers.GetNewTabWriter(text)
			err := t.ExecuteTemplate(w, rows, of)
			_ = w.Flush() // it is memory
			return Clean(text.String()), err
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

// Clean returns a text without what a terminal acts on: charts and workload clusters have their words in messages.
func Clean(text string) string {
	return strings.Map(func(r rune) rune {
		if acts(r) {
			return '?'
		}
		return r
	}, text)
}

// Escape returns JSON in which all that a terminal acts on is escaped. It is in strings alone.
func Escape(text string) string {
	escaped := &strings.Builder{}
	for _, r := range text {
		if !acts(r) {
			escaped.WriteRune(r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(escaped, `\u%04x`, unit)
		}
	}
	return escaped.String()
}

// acts reports whether a terminal acts on a character, as on one that turns the words of a line around.
func acts(r rune) bool {
	return unicode.Is(unicode.Cf, r) || unicode.IsControl(r) && r != '\t' && r != '\n'
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

// three returns the first three names, or all of them.
func (p *Printer) three(all []string) string {
	if p.Wide {
		return p.names(all)
	}
	return message.List(all, ", ", message.Few)
}

// named returns names in brackets, "" if there are none.
func (p *Printer) named(all []string) string {
	if len(all) == 0 {
		return ""
	}
	return " (" + p.names(all) + ")"
}

// Value returns a value as JSON, which is cut unless all is to be shown.
func (p *Printer) Value(value any) (string, error) {
	data, err := json.Marshal(value)
	if p.Wide {
		return string(data), err
	}
	return message.Shorten(string(data), mostOfValue), err
}

// Places returns the places that a value may be from, and whether these have another one by now.
func Places(of values.Origin) string {
	text := strings.Join(of.From, " or ")
	switch {
	case !of.Changed:
		return text
	case text == "":
		return "nowhere any more"
	default:
		return text + ", which has another value now"
	}
}

// signs of actions are as those of a diff.
var signs = map[addonsv1.PlanAction]string{
	plan.Create: "+", plan.Hook: "+", plan.Delete: "-", plan.Update: "~", plan.Adopt: "~", plan.Recreate: "~", plan.Refuse: "!", plan.Keep: "=",
}

// state returns the state of an add-on in a plan, in a color.
func (p *Printer) state(is addonsv1.PlanState) string {
	text := strings.ToLower(words.ReplaceAllString(string(is), " $1"))
	switch is {
	case plan.Refused:
		return p.color("31")(text)
	case plan.Same:
		return p.color("32")(text)
	default:
		return p.color("33")(text)
	}
}

// room is for the causes that a status still has room for.
type room struct{ left int }

func (p *Printer) room() *room {
	if p.Wide {
		return &room{math.MaxInt}
	}
	return &room{mostCauses}
}

// listed are causes, those of them that are shown, and how many aren't.
type listed struct {
	All, Shown []summary.Cause
	More       int
}

// For takes the room for causes.
func (r *room) For(all []summary.Cause) listed {
	shown := all[:min(len(all), r.left)]
	r.left -= len(shown)
	return listed{all, shown, len(all) - len(shown)}
}

// Number returns a number with its noun, as in "2 clusters".
func Number(n any, noun string) string {
	if fmt.Sprint(n) != "1" {
		noun += "s"
	}
	return fmt.Sprint(n, " ", noun)
}

// paragraph returns a text in lines that begin at a column; "" for none. Only the first one has the label.
func paragraph(label string, column int, text string) string {
	words := strings.Join(strings.Fields(Clean(text)), " ")
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

// versions returns an add-on with its versions, those of most clusters first.
func (p *Printer) versions(a *summary.Addon) string {
	most := slices.SortedFunc(maps.Keys(a.Versions), func(x, y string) int {
		return cmp.Or(cmp.Compare(a.Versions[y], a.Versions[x]), cmp.Compare(x, y))
	})
	if len(most) == 0 {
		return a.Name + " -"
	}
	text := a.Name + " " + most[0]
	for i, other := range most[1:] {
		if i == few && !p.Wide {
			return text + " (and others)"
		}
		if names := a.OnVersion[other]; p.Wide && len(names) > 0 {
			text += fmt.Sprintf(" (%s on %s)", other, p.names(names))
			continue
		}
		text += fmt.Sprintf(" (%s on %d)", other, a.Versions[other])
	}
	if a.Available != "" {
		text += " (" + a.Available + " is there, not taken)"
	}
	return Clean(text)
}

// states returns on how many clusters an add-on is in each phase, and names those on which it isn't Ready.
func (p *Printer) states(a *summary.Addon) string {
	var states []string
	for _, phase := range slices.Backward(stack.Phases) {
		if names := a.Phases[phase]; len(names) > 0 {
			state := fmt.Sprintf("%d %s", len(names), phase)
			if phase != addonsv1.AddonReady {
				state += " (" + p.names(names) + ")"
			}
			states = append(states, state)
		}
	}
	return strings.Join(states, ", ")
}

// branch is an add-on in a tree, with the lines that lead to it.
type branch struct {
	*summary.Addon
	Lines string
}

// branches returns the add-ons of a stack that are below a parent, "" for none, each with those below it.
func branches(s *summary.Stack, parent, lines string) (all []branch) {
	var children []*summary.Addon
	for i := range s.Addons {
		if parentOf(s, &s.Addons[i]) == parent {
			children = append(children, &s.Addons[i])
		}
	}
	for i, a := range children {
		bar, next := "|- ", "|  "
		if i == len(children)-1 {
			bar, next = "`- ", "   "
		}
		all = append(append(all, branch{a, lines + bar}), branches(s, a.Name, lines+next)...)
	}
	return all
}

// parentOf returns the first add-on of the stack that one depends on, "" if there is none.
func parentOf(s *summary.Stack, a *summary.Addon) string {
	for _, on := range a.DependsOn {
		if slices.ContainsFunc(s.Addons, func(b summary.Addon) bool { return b.Name == on }) {
			return on
		}
	}
	return ""
}

// clusters returns how many clusters have any of the causes.
func clusters(causes []summary.Cause) int {
	names := sets.New[string]()
	for _, cause := range causes {
		for _, name := range cause.Clusters {
			names.Insert(cause.Namespace + "/" + name)
		}
	}
	return names.Len()
}
