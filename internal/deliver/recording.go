// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/internal/retry"
)

// recordFault tells of a release record that can't be read or written.
type recordFault struct{ *call }

// stop returns an error about a release record that can't be read or written as what stops
// the call, if somebody has to change something. All else is returned as it is, to be tried again.
func (r recordFault) stop(err error) error {
	fault, ok := errors.AsType[*record.Fault](err)
	if !ok {
		return err
	}
	switch fault.Kind {
	case record.Damaged:
		return r.refuse(ReasonRecordUnreadable, r.unreadable(fault))
	case record.TooLarge:
		return r.refuse(ReasonRecordTooLarge, fmt.Sprintf("The add-on is too large: %v. Split the chart", fault))
	case record.Unanswered:
		return r.refuse(ReasonAnswerInvalid, fmt.Sprintf(
			"%v. See whether the kubeconfig's server is the cluster's API server, and what is between", fault))
	default:
		return r.stopForWrite(err, fault)
	}
}

// stopForWrite returns the error of a Secret that wasn't written as what stops the call, unless another try may help.
func (r recordFault) stopForWrite(err error, write *record.Fault) error {
	if apierrors.IsAlreadyExists(err) {
		return err // another write came first
	}
	namespace, name, _ := strings.Cut(write.Secret, "/")
	f := object.Classify(write.Err, record.ObjectKey{Kind: "Secret", Namespace: namespace, Name: name}, false)
	gone := apierrors.IsNotFound(err) && f.Reason != object.ReasonNamespaceMissing
	switch {
	case f.Kind == object.Transient || gone:
		return err
	case f.Kind == object.Deferred:
		return r.wait(f.Reason, "Waiting: "+f.Message, retry.Webhook)
	}
	if answer, _ := object.AnswerOf(write.Err); refusalWords.MatchString(answer.Message) {
		why := refusalWords.FindString(answer.Message)
		f.Message += " (" + why + ")"
	}
	f.Message += ". It is to hold the release record"
	if f.Reason == object.ReasonForbidden || f.Reason == object.ReasonObjectRejected {
		f.Message += fmt.Sprintf(": let the kubeconfig's user create, update and delete Secrets in namespace %s", namespace)
	}
	return r.refuse(f.Reason, f.Message)
}

// unreadable says what is wrong with a record, and what is lost with it.
func (r recordFault) unreadable(damaged *record.Fault) string {
	lost := "the add-on is then installed again, with other generated passwords and certificates, its hooks run again, " +
		"and objects that only this record names stay in the cluster for ever"
	if r.removes {
		lost = "objects that only this record names then stay in the cluster for ever"
	}
	return fmt.Sprintf("%v. Restore it from a backup. Only without one delete it: %s", damaged, lost)
}

// refusalWords are those of a refused write of a Secret that quote nothing of it.
var refusalWords = regexp.MustCompile(`cannot [a-z]+ resource "secrets"|exceeded quota: [^,:]+|admission webhook "[^"]+" denied the request|ValidatingAdmissionPolicy '[^']+'`)
