// SPDX-License-Identifier: Apache-2.0

package reasons

import (
	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// Because says why an add-on or a stack changed, for the end of a sentence.
func Because(cause addonsv1.ChangeCause) string { return causes[cause] }

var causes = map[addonsv1.ChangeCause]string{
	addonsv1.ChangeEdited:     "its AddonStack changed",
	addonsv1.ChangeFollowed:   "its AddonStack follows a newer version",
	addonsv1.ChangeBack:       "its AddonStack went back to a previous revision",
	addonsv1.ChangeValues:     "its values changed",
	addonsv1.ChangeKubernetes: "the cluster's Kubernetes changed, or another fact about the cluster",
	addonsv1.ChangeRenewed:    "a certificate was to be renewed",
	addonsv1.ChangeRetried:    "the same was tried again",
	addonsv1.ChangeRolledBack: "the upgrade failed",
	addonsv1.ChangeRepaired:   "others changed its objects",
	addonsv1.ChangeInstalled:  "it wasn't there before",
	addonsv1.ChangeRemoved:    "it isn't wanted any more",
}
