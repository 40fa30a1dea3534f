// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/clusterstack"
	"github.com/cluster-chandler/chandler/internal/deliver"
)

// Times between two looks at a condition that doesn't hold: a quarter of the time
// that it has been waited for. The objects are anyone's, so they aren't watched.
const (
	firstLook = time.Second
	lastLook  = 30 * time.Second
)

// hold is what an add-on waits for.
type hold struct {
	message    string
	retryAfter time.Duration
	waited     time.Duration // so far, by this process
}

// held says what the add-on waits for before it may be installed or upgraded; nil
// if nothing holds it. A revision that has begun isn't held any more.
func (p *pass) held(ctx context.Context, a *addon, in *inputs, record deliver.Summary) (*hold, error) {
	if len(a.Preconditions) == 0 {
		return nil, nil
	}
	if record.Digest != "" && record.Status != deliver.StatusDeployed {
		digest, err := p.digestNow(ctx, in, record.FactsUsed)
		if err != nil || digest == record.Digest {
			return nil, err
		}
	}
	return p.waitFor(ctx, a, "preconditions", a.Preconditions)
}

// postcondition is what has to hold before the add-on is ready; nil if nothing has to.
func (p *pass) postcondition(a *addon) func(context.Context) (string, time.Duration, error) {
	if len(a.Postconditions) == 0 {
		return nil
	}
	return func(ctx context.Context) (string, time.Duration, error) {
		waiting, err := p.waitFor(ctx, a, "postconditions", a.Postconditions)
		if waiting == nil || err != nil {
			return "", 0, err
		}
		return waiting.message, waiting.retryAfter, nil
	}
}

// recheck looks at the postconditions of an add-on that is installed, if they aren't those
// that held before. It returns what is waited for, nil if nothing is, and notes in the terms
// what held.
func (p *pass) recheck(ctx context.Context, a *addon, record deliver.Summary, terms *deliver.Terms) (*hold, error) {
	digest := postconditionsDigest(a)
	if digest != "" && digest != record.Postconditions {
		if awaited, err := p.waitFor(ctx, a, "postconditions", a.Postconditions); awaited != nil || err != nil {
			return awaited, err
		}
	}
	terms.Postconditions = digest
	return nil, nil
}

// await writes the status of an add-on that is installed and waits for a postcondition.
func (p *pass) await(a *addon, awaited *hold, status *addonsv1.AddonStatus) {
	status.Phase, status.Reason = addonsv1.AddonUpgrading, deliver.ReasonWaitingForPostcondition
	status.Message = shorten("Waiting for " + awaited.message)
	if deadline := progressDeadline(a); awaited.waited >= deadline {
		status.Phase, status.Reason = addonsv1.AddonFailed, deliver.ReasonReadinessTimeout
		status.Message = shorten(fmt.Sprintf("a postcondition doesn't hold within %s: %s", deadline, awaited.message))
	}
	p.retryIn(awaited.retryAfter)
}

// waitFor returns the first condition that doesn't hold, nil if all do.
func (p *pass) waitFor(ctx context.Context, a *addon, field string, all []addonsv1.ObjectsCondition) (*hold, error) {
	key := waitKey{cluster: p.keyOf(p.ca.Name), release: a.release(), field: field}
	for i := range all {
		missing, err := p.unmet(ctx, &all[i])
		if err != nil {
			return nil, err
		}
		if missing != "" {
			retryAfter, waited := p.waits.next(key, p.Clock.Now())
			return &hold{
				message:    fmt.Sprintf("addons[%s].%s[%d]: %s", a.Name, field, i, missing),
				retryAfter: retryAfter,
				waited:     waited,
			}, nil
		}
	}
	p.waits.done(key)
	return nil, nil
}

// unmet says why a condition doesn't hold, "" if it does.
func (p *pass) unmet(ctx context.Context, c *addonsv1.ObjectsCondition) (string, error) {
	condition, err := asWait(c).Compile()
	if err != nil {
		return err.Error(), nil //nolint:nilerr // a fault of the expression is what people are told
	}
	objects := map[string]map[string]any{}
	for _, o := range c.Objects {
		object, missing, err := p.conditionObject(ctx, o)
		if missing != "" || err != nil {
			return missing, err
		}
		objects[o.Key] = object
	}
	holds, err := condition.Holds(objects)
	switch {
	case err != nil:
		return err.Error(), nil //nolint:nilerr // as of a field that isn't there yet
	case !holds:
		return fmt.Sprintf("%q isn't true", c.Expression), nil
	}
	return "", nil
}

// conditionObject reads an object of the workload cluster, or says why it can't be had.
// The error is for what isn't about this object.
func (p *pass) conditionObject(ctx context.Context, o addonsv1.ConditionObject) (object map[string]any, missing string, err error) {
	if wrong := clusterstack.Object(o).Check(); wrong != nil {
		return nil, fmt.Sprintf("objects[%s].%v", o.Key, wrong), nil
	}
	found := &unstructured.Unstructured{}
	found.SetAPIVersion(o.APIVersion)
	found.SetKind(o.Kind)
	workload := p.workload.conn.Client()
	if o.Namespace == "" {
		namespaced, err := workload.IsObjectNamespaced(found)
		if err != nil {
			missing, err = unreadable(ctx, o, err)
			return nil, missing, err
		}
		if namespaced {
			return nil, fmt.Sprintf("objects[%s].namespace: a %s is in a namespace; say in which one", o.Key, o.Kind), nil
		}
	}
	if err := workload.Get(ctx, client.ObjectKey{Namespace: o.Namespace, Name: o.Name}, found); err != nil {
		missing, err = unreadable(ctx, o, err)
		return nil, missing, err
	}
	return found.Object, "", nil
}

// unreadable says what an error about an object means for the condition.
func unreadable(ctx context.Context, o addonsv1.ConditionObject, err error) (missing string, _ error) {
	name := o.Kind + " " + o.Name
	if o.Namespace != "" {
		name = o.Kind + " " + o.Namespace + "/" + o.Name
	}
	answer := apierrors.APIStatus(nil)
	switch {
	case apierrors.IsNotFound(err):
		return name + " doesn't exist", nil
	case meta.IsNoMatchError(err):
		return fmt.Sprintf("the cluster doesn't know the kind of %s, %s", name, o.APIVersion), nil
	case apierrors.IsForbidden(err), apierrors.IsBadRequest(err), apierrors.IsMethodNotSupported(err):
		return fmt.Sprintf("%s can't be read: %s", name, apierrors.ReasonForError(err)), nil
	case isSilent(err), errors.As(err, &answer):
		return "", fmt.Errorf("reading %s: %w", name, err)
	}
	// The words are the client's, or of what is in front of the cluster, and for the log alone.
	log.FromContext(ctx).Error(err, "Could not read an object that a condition is about", "key", o.Key, "object", name)
	return fmt.Sprintf("%s, %s, couldn't be asked for, or the answer can't be read; the manager's log has the error", name, o.APIVersion), nil
}

func asWait(c *addonsv1.ObjectsCondition) *clusterstack.Wait {
	wait := &clusterstack.Wait{Expression: c.Expression}
	for _, o := range c.Objects {
		wait.Objects = append(wait.Objects, clusterstack.Object(o))
	}
	return wait
}

// waits remembers since when is waited for what. Losing it costs a few looks more.
type waits struct {
	mu    sync.Mutex
	since map[waitKey]time.Time
}

type waitKey struct {
	cluster client.ObjectKey
	release deliver.Release
	field   string
}

func newWaits() *waits { return &waits{since: map[waitKey]time.Time{}} }

// next is the time until the next look, and how long it has been waited for.
func (w *waits) next(key waitKey, now time.Time) (after, waited time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	since, known := w.since[key]
	if !known {
		w.since[key], since = now, now
	}
	waited = now.Sub(since)
	return min(max(waited/4, firstLook), lastLook), waited
}

func (w *waits) done(key waitKey) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.since, key)
}

// forget drops all that a cluster waited for.
func (w *waits) forget(cluster client.ObjectKey) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for key := range w.since {
		if key.cluster == cluster {
			delete(w.since, key)
		}
	}
}
