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

// tableOfReasons returns the table of reasons as people read it.
func tableOfReasons() string {
	lines := []string{"| reason | phase | event | meaning, and the way out |", "|---|---|---|---|"}
	for i := 0; i < len(reasons.Table); {
		row, names := reasons.Table[i], []string{"`" + reasons.Table[i].Name + "`"}
		for i++; i < len(reasons.Table) && reasons.Table[i].Meaning == ""; i++ {
			names = append(names, "`"+reasons.Table[i].Name+"`")
		}
		lines = append(lines, fmt.Sprintf("| %s | %s | %s | %s |", strings.Join(names, ", "), phasesOf(row), eventOf(row), row.Meaning))
	}
	return strings.Join(lines, "\n") + "\n"
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
