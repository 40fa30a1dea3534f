// SPDX-License-Identifier: Apache-2.0

package decide_test

import (
	"testing"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/decide"
)

// TestCauseOfAChange changes one fact after the other of an add-on that is installed as wanted.
func TestCauseOfAChange(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(c *decide.Changed)
		want   addonsv1.ChangeCause
	}{
		"it wasn't there":                   {func(c *decide.Changed) { *c = decide.Changed{OfStack: addonsv1.ChangeEdited} }, addonsv1.ChangeInstalled},
		"its stack was edited":              {func(c *decide.Changed) { c.SameSpec, c.SameStack, c.SameInputs = false, false, false }, addonsv1.ChangeEdited},
		"its stack goes back":               {func(c *decide.Changed) { c.SameSpec, c.SameStack, c.OfStack = false, false, addonsv1.ChangeBack }, addonsv1.ChangeBack},
		"its stack follows":                 {func(c *decide.Changed) { c.SameSpec, c.SameStack, c.OfStack = false, false, addonsv1.ChangeFollowed }, addonsv1.ChangeFollowed},
		"another add-on was edited, values": {func(c *decide.Changed) { c.SameStack, c.SameInputs = false, false }, addonsv1.ChangeValues},
		"pinned values":                     {func(c *decide.Changed) { c.SameStack, c.SamePinned, c.SameInputs = false, false, false }, addonsv1.ChangeValues},
		"pinned values go back": {func(c *decide.Changed) {
			c.SameStack, c.SamePinned, c.OfStack = false, false, addonsv1.ChangeBack
		}, addonsv1.ChangeBack},
		"a row of versions":              {func(c *decide.Changed) { c.SameSpec, c.SameInputs = false, false }, addonsv1.ChangeKubernetes},
		"a fact":                         {func(*decide.Changed) {}, addonsv1.ChangeKubernetes},
		"values":                         {func(c *decide.Changed) { c.SameInputs = false }, addonsv1.ChangeValues},
		"a tag was moved":                {func(c *decide.Changed) { c.SameArtifact, c.SameInputs = false, false }, addonsv1.ChangeFollowed},
		"a certificate":                  {func(c *decide.Changed) { c.IsRenewed = true }, addonsv1.ChangeRenewed},
		"a certificate, and values":      {func(c *decide.Changed) { c.IsRenewed, c.SameInputs = true, false }, addonsv1.ChangeValues},
		"it failed, or wasn't as proven": {func(c *decide.Changed) { c.Deployed = false }, addonsv1.ChangeRetried},
		"its upgrade failed": {func(c *decide.Changed) {
			c.IsRollback, c.SameSpec, c.SameStack, c.Deployed = true, false, false, false
		}, addonsv1.ChangeRolledBack},
	} {
		c := decide.Changed{
			Installed: true, SameStack: true, SameSpec: true, SamePinned: true, SameArtifact: true, SameInputs: true, Deployed: true, OfStack: addonsv1.ChangeEdited,
		}
		tc.change(&c)
		if got := c.Cause(); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}
