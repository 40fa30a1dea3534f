// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/internal/deliver/revision"
)

// Foresee returns the workloads whose pods restart when a release of Helm becomes the wanted add-on, and the outcome that stops
// it before, without a phase if nothing does. It writes nothing: the server judges the objects by dry runs. Hooks don't run.
func (d *Deliverer) Foresee(ctx context.Context, t Target, want Desired) (restarted []ObjectKey, _ Outcome, _ error) {
	t.Client = client.NewDryRunClient(t.Client)
	o, err := d.within(ctx, t, want.Release, &want, "", func(ctx context.Context, r *call) (o Outcome, err error) {
		restarted, o, err = r.foresee(ctx)
		return o, err
	})
	return restarted, o, err
}

func (r *call) foresee(ctx context.Context) (restarted []ObjectKey, _ Outcome, _ error) {
	if err := r.past.List(ctx); err != nil {
		return nil, Outcome{}, err
	}
	if len(r.past.Records) > 0 {
		if d := revision.Refusal(r.past.Records, r.want, r.now()); d.Step == revision.Refuse {
			return nil, r.refused(d.Refusal), nil
		}
	}
	made, err := r.maker(nil).Make(ctx)
	if err != nil {
		return nil, Outcome{}, err
	}
	known, before := map[ObjectKey]record.Entry{}, map[ObjectKey]*unstructured.Unstructured{}
	for _, e := range made.Inventory {
		known[e.Key()] = e
	}
	for _, o := range made.Previous {
		before[record.KeyOf(o)] = o
	}
	claimer := r.claimer()
	changed := make([]bool, len(made.Objects))
	failed := object.InParallel(len(made.Objects), func(i int) *object.Failure {
		o := made.Objects[i]
		key := record.KeyOf(o)
		live, err := r.applier.Get(ctx, o)
		if err != nil {
			live = nil // trying it tells what is wrong
		}
		result, _, err := claimer.Apply(ctx, o, known[key], false)
		changed[i] = podsDiffer(live, result) || podsDiffer(before[key], o)
		return r.past.Hidden.FailureOf(key, err)
	})
	switch f := failed.Worst(); {
	case f == nil, f.Kind == object.Deferred: // it comes by itself
	case f.Kind == object.Transient:
		return nil, Outcome{}, f.Unwrap()
	default:
		return nil, r.outcome(addonsv1.AddonFailed, f.Reason, f.Message), nil
	}
	for i, o := range made.Objects {
		if changed[i] {
			restarted = append(restarted, record.KeyOf(o))
		}
	}
	return restarted, Outcome{}, nil
}

// podsDiffer reports whether the pods of a workload restart as its template changes. A CronJob's don't.
func podsDiffer(before, after *unstructured.Unstructured) bool {
	was, is := revision.PodTemplateOf(before), revision.PodTemplateOf(after)
	return was != nil && is != nil && after.GetKind() != "CronJob" && !equality.Semantic.DeepEqual(was.Object, is.Object)
}
