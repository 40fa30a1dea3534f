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
)

// stopForRecord returns an error about a release record that can't be read or written as what stops
// the call, if somebody has to change something. All else is returned as it is, to be tried again.
func (r *call) stopForRecord(err error) error {
	if damaged, ok := errors.AsType[*record.UnreadableError](err); ok {
		return r.refuse(ReasonRecordUnreadable, r.unreadable(damaged))
	}
	if large, ok := errors.AsType[*record.TooLargeError](err); ok {
		return r.refuse(ReasonRecordTooLarge, fmt.Sprintf("The add-on is too large: %v. Split the chart", large))
	}
	if answer, ok := errors.AsType[*record.AnswerError](err); ok {
		return r.refuse(ReasonAnswerInvalid, fmt.Sprintf(
			"%v. See whether the kubeconfig's server is the cluster's API server, and what is between", answer))
	}
	write, ok := errors.AsType[*record.WriteError](err)
	if !ok || apierrors.IsAlreadyExists(err) {
		return err // another write came first
	}
	namespace, name, _ := strings.Cut(write.Secret, "/")
	f := object.Classify(write.Err, record.ObjectKey{Kind: "Secret", Namespace: namespace, Name: name}, false)
	gone := apierrors.IsNotFound(err) && f.Reason != object.ReasonNamespaceMissing
	switch {
	case f.Kind == object.Transient || gone:
		return err
	case f.Kind == object.Deferred:
		return r.wait(f.Reason, "Waiting: "+f.Message, webhookRetry)
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
func (r *call) unreadable(damaged *record.UnreadableError) string {
	lost := "the add-on is then installed anew, with other generated passwords and certificates, its hooks run again, " +
		"and objects that only this record names stay in the cluster for ever"
	if r.removes {
		lost = "objects that only this record names then stay in the cluster for ever"
	}
	return fmt.Sprintf("%v. Restore it from a backup. Only without one delete it: %s", damaged, lost)
}

// refusalWords are those of a refused write of a Secret that quote nothing of it.
var refusalWords = regexp.MustCompile(`cannot [a-z]+ resource "secrets"|exceeded quota: [^,:]+|admission webhook "[^"]+" denied the request|ValidatingAdmissionPolicy '[^']+'`)
