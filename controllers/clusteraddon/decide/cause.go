// SPDX-License-Identifier: Apache-2.0

package decide

import (
	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// Changed are facts about an add-on whose release gets another revision, compared with its newest record.
type Changed struct {
	// Installed says that there is a record, and IsRollback that the new one is a rollback.
	Installed, IsRollback bool
	// SameStack, SameSpec, SamePinned and SameArtifact say that the record names the revision of the stack, has what the add-on's
	// user wrote with its version, the values that the stack's revision pins, and the artifact.
	SameStack, SameSpec, SamePinned, SameArtifact bool
	// SameInputs says that all is the same but for facts about the cluster.
	SameInputs bool
	// Deployed says that the record is as it was written, and its revision was installed. IsRenewed says that a certificate
	// of it is to be renewed.
	Deployed, IsRenewed bool
	// OfStack is why the stack's revision is another one.
	OfStack addonsv1.ChangeCause
}

// Cause returns why the add-on changes.
func (c Changed) Cause() addonsv1.ChangeCause {
	switch {
	case c.IsRollback:
		return addonsv1.ChangeRolledBack
	case !c.Installed:
		return addonsv1.ChangeInstalled
	case !c.SameSpec && c.SameStack: // a row of chart.versions
		return addonsv1.ChangeKubernetes
	case !c.SameSpec, !c.SamePinned && !c.SameStack && c.OfStack == addonsv1.ChangeBack:
		return c.OfStack
	case !c.SameArtifact: // a tag that was moved
		return addonsv1.ChangeFollowed
	case !c.SameInputs, !c.SamePinned:
		return addonsv1.ChangeValues
	case c.IsRenewed:
		return addonsv1.ChangeRenewed
	case c.Deployed:
		return addonsv1.ChangeKubernetes
	}
	return addonsv1.ChangeRetried
}
