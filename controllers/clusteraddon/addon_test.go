// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"testing"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/decide"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/wanted"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/test/addons"
)

// What a stack installed stays its own while nobody knows what it wants: its revision may come a moment later than that of
// another stack.
func TestClaims(t *testing.T) {
	both := []wanted.Addon{addons.Wanted("a", "web"), addons.Wanted("b", "web")}
	for name, tc := range map[string]struct {
		installed, undecided string // stacks, "none" for none
		want                 string
		moved                bool
	}{
		"nobody has it":                         {"none", "none", "a", false},
		"the second has it":                     {"b", "none", "b", false},
		"a stack has it that wants it no more":  {"gone", "none", "a", false},
		"a stack has it that is undecided":      {"gone", "gone", "gone", false},
		"it moves from one that is undecided":   {"gone", "gone", "a", true},
		"nobody has it, and a stack may":        {"none", "gone", "a", false},
		"nobody has it, and one without a name": {"none", "", "a", false}, // no record has this name
	} {
		installed, unresolved := map[deliver.Release]deliver.Summary{}, map[string]unresolvedStack{}
		if tc.installed != "none" {
			installed[both[0].Release()] = deliver.Summary{Release: both[0].Release(), Terms: deliver.Terms{Stack: tc.installed}}
		}
		if tc.undecided != "none" {
			unresolved[tc.undecided] = unresolvedStack{state: decide.Undecided}
		}
		assigned := []addonsv1.StackRevision{{Name: "gone"}}
		if tc.moved {
			assigned[0].MovedAddons = []string{both[0].Release().String()}
		}
		if got := releaseHolders(both, installed, unresolved, assigned)[both[0].Release()]; got != tc.want {
			t.Errorf("%s: %q got it", name, got)
		}
	}
}
