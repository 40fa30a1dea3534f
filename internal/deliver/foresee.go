// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-chandler/chandler/internal/deliver/claim"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/internal/deliver/revision"
	"github.com/cluster-chandler/chandler/internal/failure"
)

// Foresee returns the workloads whose pods restart when a release of Helm becomes the wanted add-on, and the outcome that stops
// it before, without a phase if nothing does. It writes nothing: the server judges the objects by dry runs. Hooks don't run.
func (d *Deliverer) Foresee(ctx context.Context, t Target, want Desired) (restarted []ObjectKey, _ Outcome, _ error) {
	t.Client = client.NewDryRunClient(t.Client)
	o, err := d.within(ctx, t, want.Release, &want, "", func(ctx context.Context, r *call) (o Outcome, err error) {
		if err = r.past.List(ctx); err != nil {
			return o, err
		}
		if len(r.past.Records) > 0 {
			if d := revision.Refusal(r.past.Records, &want, r.now()); d.Step == revision.Refuse {
				return r.refused(d.Refusal), nil
			}
		}
		restarted, err = restartedBy(ctx, d.maker(t, &want, r.past), r.claimer())
		return o, err
	})
	return restarted, o, err
}

// restartedBy returns the workloads whose pods restart, by trying the objects of the next revision.
func restartedBy(ctx context.Context, maker *revision.Maker, claimer *claim.Claimer) (restarted []ObjectKey, _ error) {
	made, err := maker.Make(ctx)
	if err != nil {
		return nil, err
	}
	known, before := map[ObjectKey]record.Entry{}, map[ObjectKey]*unstructured.Unstructured{}
	for _, e := range made.Inventory {
		known[e.Key()] = e
	}
	for _, o := range made.Previous {
		before[record.KeyOf(o)] = o
	}
	changed := make([]bool, len(made.Objects))
	failed := object.InParallel(len(made.Objects), func(i int) *object.Failure {
		o := made.Objects[i]
		key := record.KeyOf(o)
		live, err := claimer.Applier.Get(ctx, o)
		if err != nil {
			live = nil // trying it tells what is wrong
		}
		result, _, err := claimer.Apply(ctx, o, known[key], false)
		changed[i] = revision.RestartsPods(live, result) || revision.RestartsPods(before[key], o)
		return maker.Past.Hidden.FailureOf(key, err)
	})
	switch f := failed.Worst(); {
	case f == nil, f.Kind == object.Deferred: // it comes by itself
	case f.Kind == object.Transient:
		return nil, f.Unwrap()
	default:
		return nil, failure.New(f.Reason, "%s", f.Message)
	}
	for i, o := range made.Objects {
		if changed[i] {
			restarted = append(restarted, record.KeyOf(o))
		}
	}
	return restarted, nil
}
