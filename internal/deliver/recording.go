// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
)

// unrecorded returns the outcome of a release record that couldn't be written, if
// somebody has to change something. All else is an error, to be tried again.
func (r *run) unrecorded(o Outcome, err error) (Outcome, error) {
	if answer, ok := errors.AsType[*record.AnswerError](err); ok {
		return r.notRecorded(ReasonAnswerInvalid, fmt.Sprintf(
			"%v. See whether the kubeconfig's server is the cluster's API server, and what is between", answer)), nil
	}
	write, ok := errors.AsType[*record.WriteError](err)
	if !ok || apierrors.IsAlreadyExists(err) {
		return o, err // another write came first
	}
	namespace, name, _ := strings.Cut(write.Secret, "/")
	f := classify(write.Err, record.ObjectKey{Kind: "Secret", Namespace: namespace, Name: name}, false)
	gone := apierrors.IsNotFound(err) && f.reason != ReasonNamespaceMissing
	switch {
	case f.kind == transient || gone:
		return o, err
	case f.kind == deferred:
		return *r.wait(f.reason, "Waiting: "+f.message, webhookRetry), nil
	}
	if why := refusalWords.FindString(answerOf(write.Err)); why != "" {
		f.message += " (" + why + ")"
	}
	f.message += ". It is to hold the release record"
	if f.reason == ReasonForbidden || f.reason == ReasonObjectRejected {
		f.message += fmt.Sprintf(": let the kubeconfig's user create, update and delete Secrets in namespace %s", namespace)
	}
	return r.notRecorded(f.reason, f.message), nil
}

// refusalWords are those of a refused write of a Secret that quote nothing of it.
var refusalWords = regexp.MustCompile(`cannot [a-z]+ resource "secrets"|exceeded quota: [^,:]+|admission webhook "[^"]+" denied the request|ValidatingAdmissionPolicy '[^']+'`)

func answerOf(err error) string {
	if api := apierrors.APIStatus(nil); errors.As(err, &api) {
		return api.Status().Message
	}
	return ""
}

func (r *run) notRecorded(reason, message string) Outcome {
	r.rec = nil // what it says was lost
	return r.s.backoff.fail(r.now(), r.tried(r.digest), *r.refusal(addonsv1.AddonFailed, reason, message))
}
