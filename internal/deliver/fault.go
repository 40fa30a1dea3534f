// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/deliver/observe"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/internal/retry"
)

// recordFault tells of a release record that can't be read or written.
type recordFault struct{ *call }

// concealAll takes the secrets out of an error that is returned, and out of the answer that it wraps.
func (h *hidden) concealAll(err error) error {
	if _, isOutcome := errors.AsType[*stopped](err); err == nil || isOutcome {
		return err // whose message is hidden already
	}
	if words := h.in(err.Error()); words != err.Error() {
		return &concealed{words: words, err: h.conceal(err)}
	}
	return err
}

// concealed is an error with other words.
type concealed struct {
	words string
	err   error
}

func (c *concealed) Error() string { return c.words }

// Unwrap returns what tells the meaning of the error.
func (c *concealed) Unwrap() error { return c.err }

// conceal takes the secrets out of an answer of the API server, which quotes what it refuses.
func (h *hidden) conceal(err error) error {
	status, answered := object.AnswerOf(err)
	if !answered {
		return err
	}
	status.Message = h.inWords(status.Message)
	for i := range status.Details.Causes {
		cause := &status.Details.Causes[i]
		cause.Message = h.inWords(cause.Message)
	}
	return &apierrors.StatusError{ErrStatus: status}
}

// stop returns an error about a release record that can't be read or written as what stops
// the call, if somebody has to change something. All else is returned as it is, to be tried again.
func (r recordFault) stop(ctx context.Context, err error) error {
	fault, ok := errors.AsType[*record.Fault](err)
	if !ok {
		return err
	}
	switch fault.Kind {
	case record.Damaged, record.InParts:
		return r.refuse(ReasonRecordUnreadable, r.unreadable(fault))
	case record.TooLarge:
		return r.refuse(ReasonRecordTooLarge, fmt.Sprintf(
			"Add-on %s is too large: %v. Split it into several add-ons, or take out of it what isn't needed", r.release, fault))
	case record.Unanswered:
		return r.refuse(ReasonAnswerInvalid, fmt.Sprintf(
			"%v. See whether the kubeconfig's server is the cluster's API server, and what is between", fault))
	default:
		return r.stopForWrite(ctx, err, fault)
	}
}

// stopForWrite returns the error of a Secret that wasn't written as what stops the call, unless another try may help.
func (r recordFault) stopForWrite(ctx context.Context, err error, write *record.Fault) error {
	namespace, name, _ := strings.Cut(write.Secret, "/")
	if apierrors.IsAlreadyExists(err) {
		cause := r.list(ctx)
		if cause != nil || slices.ContainsFunc(r.records, func(s Summary) bool { return s.SecretName == name }) {
			return err // another write came first
		}
		return r.refuse(ReasonRecordUnreadable, fmt.Sprintf(
			"Secret %s is in the place of the next release record, and isn't one: it lacks labels, or somebody made it. "+
				"If it was a record, set its labels again, as other records have them. If not, delete it", write.Secret))
	}
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
		f.Message += fmt.Sprintf(": let the kubeconfig's user create, update, patch and delete Secrets in namespace %s", namespace)
	}
	return r.refuse(f.Reason, f.Message)
}

// refusalWords are those of a refused write of a Secret that quote nothing of it.
var refusalWords = regexp.MustCompile(`cannot [a-z]+ resource "secrets"|exceeded quota: [^,:]+|admission webhook "[^"]+" denied the request|ValidatingAdmissionPolicy '[^']+'`)

// unreadable says what is wrong with a record, and what is lost with it.
func (r recordFault) unreadable(fault *record.Fault) string {
	lost := "the add-on is then installed again, with other generated passwords and certificates, its hooks run again, " +
		"and objects that only this record names stay in the cluster for ever"
	if r.removes {
		lost = "objects that only this record names then stay in the cluster for ever"
	}
	if fault.Kind == record.InParts {
		return fmt.Sprintf("%v. Go back to that version, and make the add-on small enough for one Secret, or remove it there. "+
			"Or delete this Secret, and those with the label owner=chandler and the same label name: %s", fault, lost)
	}
	return fmt.Sprintf("%v. Restore it from a backup. Only without one delete it: %s", fault, lost)
}

// Panicked logs a panic that was recovered from while a cluster was worked on, and
// returns the message for the add-on's status. The value may hold what a cluster
// answered, so the log has it only if it is the runtime's own.
func Panicked(ctx context.Context, cluster string, value any) (message string) {
	stack := debug.Stack()
	if there, ok := value.(*observe.Panic); ok { // in another goroutine
		value, stack = there.Value, there.Stack
	}
	what := fmt.Sprintf("%T", value)
	if err, ok := value.(runtime.Error); ok {
		what = err.Error()
	}
	logf.FromContext(ctx).Error(nil, "Recovered from a panic", "Cluster", cluster, "panic", what, "stack", string(stack))
	return "An answer of the cluster, or a record in it, led to a fault of Chandler. The manager's log has the details. " +
		"See whether the kubeconfig's server is the cluster's API server, and report the fault"
}

// failureOf returns what an error about an object means, nil for none. It tells nothing that comes
// from Secrets.
func (r *call) failureOf(key record.ObjectKey, err error) *object.Failure {
	if f, ok := errors.AsType[*object.Failure](err); ok || err == nil {
		return f
	}
	return object.Classify(r.hidden.conceal(err), key, r.scope.Defines(schema.GroupKind{Group: key.Group, Kind: key.Kind}))
}
