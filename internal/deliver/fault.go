// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/deliver/observe"
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

// work is what a call is for.
type work func(context.Context) (Outcome, error)

// within does work for an add-on. A large one needs room, which is claimed as [call.contained] begins: many of them, on
// clusters that are slow to apply them, would take the manager's memory. The size of an add-on is known only when it is
// rendered or read. Data that was rendered or read without room is dropped, and the work is begun again.
func (d *Deliverer) within(
	ctx context.Context, t Target, release Release, want *Desired, proof string, begun func(*call) work,
) (Outcome, error) {
	for recorded := false; ; {
		r := d.newCall(t, release, want, proof)
		o, err := r.contained(ctx, begun(r))
		r.remember(err)
		r.end(err)
		proof, recorded = r.proof, recorded || r.newRevision // of a record that was written meanwhile
		if errors.Is(err, errOutgrown) {
			continue
		}
		if err != nil {
			err = fmt.Errorf("add-on %s: %w", release, err)
		}
		o.Proof, o.Recorded = proof, recorded
		return o, err
	}
}

// contained calls act. A panic becomes the add-on's failure: no cluster's answer may end
// the process, which serves all others. So does any error that somebody can act on.
func (r *call) contained(ctx context.Context, act work) (o Outcome, err error) {
	defer func() {
		if value := recover(); value != nil {
			r.s.contents = r.d.newContents(r.t, r.release)
			r.s.turn(subject{})
			err = r.refuse(ReasonInternalError, Panicked(ctx, r.t.Name, value))
		}
		if stop, ok := errors.AsType[*stopped](err); ok {
			o, err = stop.Outcome, nil
		}
	}()
	if there := r.s.tracker.Panicked(); there != nil {
		panic(there)
	}
	if err = r.claim(ctx); err == nil {
		o, err = act(ctx)
	}
	return o, r.hidden.concealAll(recordFault{r}.stop(err))
}
