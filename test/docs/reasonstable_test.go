// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/reasons"
)

// TestNamesOfOneLine lets names share a line of the page only if all of it is so of each of them.
func TestNamesOfOneLine(t *testing.T) {
	line := reasons.Reason{}
	for _, row := range reasons.Table {
		if row.Meaning != "" {
			line = row
		} else if !slices.Equal(row.Phases, line.Phases) || eventOf(row) != eventOf(line) {
			t.Errorf("%s differs from %s, with which it shares a line", row.Name, line.Name)
		}
	}
}

// phases are the sections of the page of reasons, by the first phase of a reason.
var phases = []struct {
	phase   addonsv1.AddonPhase // "" for reasons of any phase
	heading string
}{
	{addonsv1.AddonPending, "Pending: the add-on waits"},
	{addonsv1.AddonFailed, "Failed: somebody has to act"},
	{addonsv1.AddonInstalling, "Installing or Upgrading: on the way"},
	{addonsv1.AddonUpgrading, "Upgrading: on the way back"},
	{addonsv1.AddonDegraded, "Degraded: a workload isn't ready any more"},
	{addonsv1.AddonRemoving, "Removing: the removal waits"},
	{addonsv1.AddonUnassigned, "Unassigned: nobody wants the add-on, and it stays"},
	{"", "In any phase"},
}

// tablesOfReasons returns the tables of reasons as people read them, with their headings.
func tablesOfReasons() string {
	rows := map[addonsv1.AddonPhase][]string{}
	for i := 0; i < len(reasons.Table); {
		row, names := reasons.Table[i], []string{"`" + reasons.Table[i].Name + "`"}
		for i++; i < len(reasons.Table) && reasons.Table[i].Meaning == ""; i++ {
			names = append(names, "`"+reasons.Table[i].Name+"`")
		}
		phase := addonsv1.AddonPhase("")
		if len(row.Phases) > 0 {
			phase = row.Phases[0]
		}
		rows[phase] = append(rows[phase], fmt.Sprintf("| %s | %s | %s | %s |\n", strings.Join(names, ", "), phasesOf(row), eventOf(row), row.Meaning))
	}
	var text strings.Builder
	for _, section := range phases {
		fmt.Fprintf(&text, "\n## %s\n\n| reason | phase | event | meaning, and the way out |\n|---|---|---|---|\n%s", section.heading, strings.Join(rows[section.phase], ""))
		delete(rows, section.phase)
	}
	if len(rows) > 0 {
		panic(fmt.Sprintf("no section is for the phases of %v", rows))
	}
	return text.String()
}

func phasesOf(r reasons.Reason) string {
	if len(r.Phases) == 0 {
		return "any"
	}
	names := make([]string, 0, len(r.Phases))
	for _, phase := range r.Phases {
		names = append(names, string(phase))
	}
	return strings.Join(names, ", ")
}

// eventOf returns the type of the event that tells of the reason, "none" if none does.
func eventOf(r reasons.Reason) string {
	phases := r.Phases
	if len(phases) == 0 {
		phases = []addonsv1.AddonPhase{addonsv1.AddonPending, addonsv1.AddonFailed}
	}
	if slices.ContainsFunc(phases, r.Warns) {
		return "Warning"
	}
	return "none"
}
