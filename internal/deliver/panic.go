// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"

	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/cluster-chandler/chandler/internal/deliver/observe"
)

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
