// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	appsv1 "k8s.io/api/apps/v1"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// ChangeOf returns why a revision follows another one, which is empty if it isn't known: Edited, Followed or Back.
func ChangeOf(was, is *appsv1.ControllerRevision) addonsv1.ChangeCause {
	cause := AttemptOf(is).Cause
	switch {
	case cause == Back, is.CreationTimestamp.Before(&was.CreationTimestamp):
		return addonsv1.ChangeBack
	case cause == Followed:
		return addonsv1.ChangeFollowed
	}
	return addonsv1.ChangeEdited
}
