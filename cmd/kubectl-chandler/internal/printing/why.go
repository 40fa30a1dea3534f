// SPDX-License-Identifier: Apache-2.0

package printing

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/cmd/kubectl-chandler/internal/summary"
)

// column is where texts begin behind their labels.
const column = 12

// Cluster writes why one cluster is as it is.
func (p *Printer) Cluster(c *summary.Cluster) {
	state := p.color(green, "READY")
	if c.Ready != metav1.ConditionTrue {
		state = p.color(red, "NOT READY")
	}
	p.printf("%s (%s)  %s add-ons ready  %s for %s\n", c.Name, c.Namespace, cmp.Or(c.ReadyAddons, "0/0"), state, p.age(c.Since))
	for _, is := range c.Conditions {
		p.paragraph("", 2, fmt.Sprintf("%s=%s %s, for %s. %s", is.Type, is.Status, is.Reason, p.age(&is.LastTransitionTime), is.Message))
	}
	p.held(c.Held)
	p.printf("\n")
	for i := range c.Addons {
		p.addonOn(&c.Addons[i])
	}
}

func (p *Printer) addonOn(a *summary.AddonOnCluster) {
	title := strings.TrimSpace(a.Name + " " + clean(a.Version))
	if a.Phase == addonsv1.AddonReady {
		text := fmt.Sprintf("%s %s  Ready for %s", p.color(green, "v"), title, p.age(&a.Since))
		if a.Drift != nil && a.Drift.Repaired > 0 {
			text += fmt.Sprintf("  drift: %s, the last %s ago", number(a.Drift.Repaired, "repair"), p.age(&a.Drift.LastTime))
		}
		p.printf("%s\n", text)
		p.paragraph("    Note", column, a.Message)
		if a.Drift != nil && a.Drift.Objects > 0 {
			p.paragraph("    Drift", column, number(a.Drift.Objects, "object")+" as others changed them: "+a.Drift.Message)
		}
		return
	}
	mark := p.color(yellow, "-")
	if a.Phase == addonsv1.AddonFailed || a.Phase == addonsv1.AddonDegraded {
		mark = p.color(red, "x")
	}
	p.printf("%s %s (stack %s, namespace %s)  %s: %s  for %s\n", mark, title, a.Stack, a.Namespace, a.Phase, a.Reason, p.age(&a.Since))
	p.paragraph("    What", column, a.Message)
	p.paragraph("    Meaning", column, a.Meaning)
	if a.Revision > 0 && a.Objects != nil {
		p.paragraph("    Now", column, fmt.Sprintf("release revision %d; %d of %d objects are ready", a.Revision, a.Objects.Ready, a.Objects.Total))
	}
	if len(a.SameOn) > 0 {
		p.paragraph("    Same on", column, p.names(a.SameOn))
	}
	if a.FineOn > 0 {
		p.paragraph("    Fine on", column, fmt.Sprintf("%s, %d of them at the same revision %s", number(a.FineOn, "cluster"), a.AtRevision, a.StackRevision))
	}
}

// Why writes why a stack, or the add-ons of a name, are as they are.
func (p *Printer) Why(s *summary.Status) {
	p.stacks(s.Stacks)
	p.held(s.Held)
	causes := slices.Concat(s.Failed, s.Waiting, s.Progressing)
	if len(causes)+len(s.Held) == 0 {
		p.printf("%s", p.color(green, "Nothing is wrong"))
	}
	p.printf("\n")
	for i := range causes {
		p.cause(&causes[i])
		p.paragraph("      Meaning", column+2, causes[i].Meaning)
	}
	if s.Notes != nil && s.Notes.Text != "" {
		p.printf("\nNotes of the chart, as on %s:\n%s\n", s.Notes.Cluster, clean(strings.TrimSpace(s.Notes.Text)))
	}
}

// Tree writes the add-ons of a stack below the first one that each depends on.
func (p *Printer) Tree(s *summary.Stack) {
	p.printf("AddonStack %s/%s  revision %s  %d of %d clusters are ready\n", s.Namespace, s.Name, cmp.Or(s.Revision, "-"), s.Clusters.Ready, s.Clusters.Total)
	below := map[string][]*summary.Addon{}
	isOwn := func(on string) bool {
		return slices.ContainsFunc(s.Addons, func(b summary.Addon) bool { return b.Name == on })
	}
	for i := range s.Addons {
		a, parent := &s.Addons[i], ""
		if at := slices.IndexFunc(a.DependsOn, isOwn); at >= 0 {
			parent = a.DependsOn[at]
		}
		below[parent] = append(below[parent], a)
	}
	p.branch(below, "", "")
}

// branch writes what is below an add-on, and takes it out of the map.
func (p *Printer) branch(below map[string][]*summary.Addon, parent, indent string) {
	children := below[parent]
	delete(below, parent)
	for i, a := range children {
		bar, next := "|- ", "|  "
		if i == len(children)-1 {
			bar, next = "`- ", "   "
		}
		p.printf("%s%s%s\n", indent, bar, p.leaf(a))
		p.branch(below, a.Name, indent+next)
	}
}

func (p *Printer) leaf(a *summary.Addon) string {
	text := p.versions(a)
	var states []string
	for _, phase := range slices.Backward(summary.Phases) {
		if names := a.Phases[phase]; len(names) > 0 {
			state := fmt.Sprintf("%d %s", len(names), phase)
			if phase != addonsv1.AddonReady {
				state += " (" + p.names(names) + ")"
			}
			states = append(states, state)
		}
	}
	text += "  " + strings.Join(states, ", ")
	if len(a.DependsOn) > 0 {
		text += "  needs " + strings.Join(a.DependsOn, ", ")
	}
	return text
}
