// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver"
)

// withoutServiceAccount is why an add-on is left as it is, if the instance requires that a
// ServiceAccount is named.
const withoutServiceAccount = "This provider instance delivers with the rights of ServiceAccounts alone (--require-impersonation). " +
	"Set spec.serviceAccountName of the AddonStack; the add-on is left as it is"

// serviceAccountOf returns the name of the ServiceAccount that an installed add-on is removed
// with, "" for none. The status comes first: who may write Secrets in the workload cluster may
// change the record. Trusted says that the name is from there.
func (q *request) serviceAccountOf(record deliver.Summary) (name string, trusted bool) {
	known := q.stored.Status.Addons
	at := indexOf(known, addonsv1.AddonStatus{Name: record.Name, Namespace: record.Namespace, Stack: record.Stack})
	if at < 0 || q.stored.Status.ObservedUID != q.ca.UID {
		return record.ServiceAccount, false
	}
	return known[at].ServiceAccountName, true
}

// mayRemove reports whether an add-on may be removed with the rights that are known for it.
func (q *request) mayRemove(record deliver.Summary) bool {
	name, trusted := q.serviceAccountOf(record)
	return !q.RequireImpersonation || name != "" && trusted
}

// unwantedStatus returns the status of an add-on that only a record knows.
func (q *request) unwantedStatus(record deliver.Summary, phase addonsv1.AddonPhase) addonsv1.AddonStatus {
	status := statusOf(record, phase)
	status.ServiceAccountName, _ = q.serviceAccountOf(record)
	return status
}
