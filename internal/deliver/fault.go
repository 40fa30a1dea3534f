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
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/cluster-chandler/chandler/internal/deliver/contained"
	"github.com/cluster-chandler/chandler/internal/deliver/history"
	"github.com/cluster-chandler/chandler/internal/deliver/memory"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/deliver/outcome"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/retry"
)

// explain returns an error that somebody can act on as an outcome. All else is returned as it is, to be tried again.
func (r *call) explain(ctx context.Context, err error) (Outcome, error) {
	if errors.Is(err, memory.ErrTaken) {
		if len(r.past.Records) == 0 {
			r.past.Records = slices.Clone(r.s.records)
		}
		return r.ended(ctx, outcome.Wait(ReasonWaitingForMemory, "Other add-ons have the memory that this one needs", retry.Room), nil)
	}
	if fault, ok := errors.AsType[*record.Fault](err); ok {
		var stop outcome.Stop
		if stop, err = stopForRecord(ctx, r.past, r.removes, err, fault); stop.Is() {
			return r.ended(ctx, stop, nil)
		}
	}
	if refusal, ok := errors.AsType[*failure.Error](err); ok {
		return r.refused(refusal), nil
	}
	f, ok := errors.AsType[*object.Failure](err)
	switch {
	case !ok || f.Kind == object.Transient:
		return Outcome{}, err
	case r.patience().IsOver(f):
		return r.refused(failure.New(f.Reason, "%s", f.Message)), nil
	}
	return r.ended(ctx, outcome.Wait(f.Reason, "Waiting: "+f.Message, retry.Webhook), nil)
}

// stopForRecord returns the error of a release record that can't be read or written as a refusal, or as what is waited for, unless another
// try may help.
func stopForRecord(ctx context.Context, past *history.History, removes bool, err error, fault *record.Fault) (outcome.Stop, error) {
	namespace, name, _ := strings.Cut(fault.Secret, "/")
	switch {
	case fault.Kind == record.Damaged, fault.Kind == record.InParts:
		return outcome.Stop{}, failure.New(ReasonRecordUnreadable, "%s", unreadable(fault, removes))
	case fault.Kind == record.TooLarge:
		return outcome.Stop{}, failure.New(ReasonRecordTooLarge,
			"Add-on %s is too large: %v. Split it into several add-ons, or take out of it what isn't needed", past.Scope.Release, fault)
	case fault.Kind == record.Unanswered:
		return outcome.Stop{}, failure.New(ReasonAnswerInvalid,
			"%v. See whether the kubeconfig's server is the cluster's API server, and what is between", fault)
	case apierrors.IsAlreadyExists(err):
		cause := past.List(ctx)
		if cause != nil || slices.ContainsFunc(past.Records, func(s Summary) bool { return s.SecretName == name }) {
			return outcome.Stop{}, err // another write came first
		}
		return outcome.Stop{}, failure.New(ReasonRecordUnreadable,
			"Secret %s is in the place of the next release record, and isn't one: it lacks labels, or somebody made it. "+
				"If it was a record, set its labels again, as other records have them. If not, delete it", fault.Secret)
	}
	f := object.Classify(fault.Err, record.ObjectKey{Kind: "Secret", Namespace: namespace, Name: name}, false)
	gone := apierrors.IsNotFound(err) && f.Reason != object.ReasonNamespaceMissing
	switch {
	case f.Kind == object.Transient || gone:
		return outcome.Stop{}, err
	case f.Kind == object.Deferred:
		return outcome.Wait(f.Reason, "Waiting: "+f.Message, retry.Webhook), nil
	}
	if answer, _ := object.AnswerOf(fault.Err); refusalWords.MatchString(answer.Message) {
		f.Message += " (" + refusalWords.FindString(answer.Message) + ")"
	}
	f.Message += ". It is to hold the release record"
	if f.Reason == object.ReasonForbidden || f.Reason == object.ReasonObjectRejected {
		f.Message += fmt.Sprintf(": let the kubeconfig's user create, update, patch and delete Secrets in namespace %s", namespace)
	}
	return outcome.Stop{}, failure.New(f.Reason, "%s", f.Message)
}

// refusalWords are those of a refused write of a Secret that quote nothing of it.
var refusalWords = regexp.MustCompile(`cannot [a-z]+ resource "secrets"|exceeded quota: [^,:]+|admission webhook "[^"]+" denied the request|ValidatingAdmissionPolicy '[^']+'`)

// unreadable says what is wrong with a record, and what is lost with it.
func unreadable(fault *record.Fault, removes bool) string {
	lost := "the add-on is then installed again, with other generated passwords and certificates, its hooks run again, " +
		"and objects that only this record names stay in the cluster for ever"
	if removes {
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
	if there, ok := value.(*contained.Panic); ok { // in another goroutine
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
