// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilwait "k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	chandler "github.com/cluster-chandler/chandler/test/manager"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/wait"
)

// patience is how long what takes seconds may take on a busy machine.
const patience = 90 * time.Second

// await returns the object as soon as check has nothing to say against it. It
// watches. If the time is up, the test fails with the reason, and with what
// check said last.
func await[T client.Object](t *testing.T, s *server, obj T, timeout time.Duration, reason string, check func(T) error) T {
	t.Helper()
	start := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	verdict := errors.New("it doesn't exist")
	for ctx.Err() == nil {
		err := s.Get(ctx, client.ObjectKeyFromObject(obj), obj)
		if client.IgnoreNotFound(err) != nil {
			verdict = err
			break
		}
		if err == nil {
			if verdict = check(obj); verdict == nil {
				return obj
			}
		}
		if followUntil(ctx, t, s, obj, &verdict, check) {
			return obj
		}
	}
	t.Fatalf("%s: after %s, %T %s isn't so: %v", reason, time.Since(start).Round(time.Second), obj, client.ObjectKeyFromObject(obj), verdict)
	return obj
}

// watchAll calls see with each event of a kind in the tenant's namespace, until the function
// that it returns is called. The test fails if the watch ends before.
func (tn *tenant) watchAll(s *server, list client.ObjectList, see func(watch.Event)) func() {
	tn.t.Helper()
	ctx, cancel := context.WithCancel(tn.t.Context())
	watcher, err := s.Watch(ctx, list, client.InNamespace(tn.namespace))
	must.Succeed(tn.t, err)
	var failed error
	done := make(chan struct{})
	go func() {
		defer close(done)
		for event := range watcher.ResultChan() {
			switch {
			case ctx.Err() != nil: // its end comes as an event, too
			case event.Type == watch.Error:
				failed = apierrors.FromObject(event.Object)
			default:
				see(event)
			}
		}
		if ctx.Err() == nil {
			failed = errors.Join(failed, errors.New("the watch ended early"))
		}
	}()
	return func() {
		tn.t.Helper()
		cancel()
		watcher.Stop()
		<-done
		if failed != nil {
			tn.t.Fatal(failed)
		}
	}
}

// followUntil watches the object from where it was read; false if the watch ended.
func followUntil[T client.Object](ctx context.Context, t *testing.T, s *server, obj T, verdict *error, check func(T) error) bool {
	t.Helper()
	gvk, err := apiutil.GVKForObject(obj, scheme())
	must.Succeed(t, err)
	gvk.Kind += "List"
	list, err := scheme().New(gvk)
	must.Succeed(t, err)
	watcher, err := s.Watch(ctx, list.(client.ObjectList), client.InNamespace(obj.GetNamespace()), client.MatchingFields{"metadata.name": obj.GetName()})
	if err != nil {
		return false
	}
	defer watcher.Stop()
	for event := range watcher.ResultChan() {
		switch event.Type {
		case watch.Added, watch.Modified:
			if *verdict = check(event.Object.(T)); *verdict == nil {
				// What the caller holds becomes what was seen, or newer.
				return s.Get(ctx, client.ObjectKeyFromObject(obj), obj) == nil && check(obj) == nil
			}
		case watch.Deleted:
			*verdict = errors.New("it was deleted")
		default:
			return false
		}
	}
	return false
}

// What can't be watched is asked again and again.
var poll, throughout = wait.Until, wait.Throughout

// retryOnConflict writes again while others write in between, for half a minute: a busy machine lets controllers write many statuses.
func retryOnConflict(write func() error) error {
	return retry.RetryOnConflict(utilwait.Backoff{Duration: 10 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: 12}, write)
}

// settle returns when the controllers have nothing to do any more.
func (tn *tenant) settle() {
	tn.t.Helper()
	settleAll(tn.t, tn.manager)
}

// settleAll returns when the managers have begun to work, and none of them has
// anything to do any more.
func settleAll(t *testing.T, managers ...*manager) {
	t.Helper()
	poll(t, 30*time.Second, "the managers are to begin", func() error {
		for _, p := range managers {
			if a, err := p.Activity(); err != nil || a.Reconciles > 0 {
				return err
			}
		}
		return errors.New("no reconcile so far")
	})
	chandler.AwaitRest(t, managers...)
}

// reconcileAgain has the manager look at a Cluster again, though nothing changed but an annotation.
func (tn *tenant) reconcileAgain(cluster, value string) {
	tn.t.Helper()
	before := tn.reconciled("clusteraddon")
	tn.poke(cluster, value)
	tn.awaitReconcile("clusteraddon", before)
}

// restartAndLookAt stops the manager, and returns once another one has looked at a Cluster and has nothing left to do.
func (tn *tenant) restartAndLookAt(cluster string) {
	tn.t.Helper()
	tn.stopManager()
	tn.startManager()
	tn.poke(cluster, "restarted")
	tn.awaitReconcile("clusteraddon", 0)
	tn.settle()
}

// awaitReconcile returns when the controller has reconciled since it had done
// so this often, and has nothing left to do.
func (tn *tenant) awaitReconcile(controller string, before float64) {
	tn.t.Helper()
	poll(tn.t, 30*time.Second, "a change of an annotation is to be looked at", func() error {
		now, err := reconciled(tn.manager, controller)
		if err == nil && now <= before {
			err = fmt.Errorf("%.0f reconciles, as before", now)
		}
		if err != nil {
			return err
		}
		a, err := tn.manager.Activity()
		if err == nil && a.Backlog > 0 {
			err = fmt.Errorf("%.0f reconciles under way", a.Backlog)
		}
		return err
	})
}
