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
)

// Foresee returns the workloads whose pods restart when a release of Helm becomes the wanted add-on, and the outcome that stops
// it before, without a phase if nothing does. It writes nothing: the server judges the objects by dry runs. Hooks don't run.
func (d *Deliverer) Foresee(ctx context.Context, t Target, want Desired) (restarted []ObjectKey, _ Outcome, _ error) {
	t.Client = client.NewDryRunClient(t.Client)
	o, err := d.within(ctx, t, want.Release, &want, "", func(ctx context.Context, r *call) (_ Outcome, err error) {
		restarted, err = revisionMaker{r}.foresee(ctx)
		return Outcome{}, err
	})
	return restarted, o, err
}

func (r revisionMaker) foresee(ctx context.Context) (restarted []ObjectKey, _ error) {
	if err := r.list(ctx); err != nil {
		return nil, err
	}
	if len(r.records) > 0 {
		if d := refusal(r.records, r.want, r.now()); d.step == stepRefuse {
			return nil, r.refuse(d.reason, d.message)
		}
	}
	made, err := r.make(ctx, r.nextRevision(), nil)
	if err != nil {
		return nil, err
	}
	known := map[ObjectKey]record.Entry{}
	for _, e := range made.inventory {
		known[e.Key()] = e
	}
	tries, before := &application{call: r.call}, byKey(made.previous)
	changed := make([]bool, len(made.objects))
	failed := object.InParallel(len(made.objects), func(i int) *object.Failure {
		o := made.objects[i]
		key := record.KeyOf(o)
		live, err := r.applier.Get(ctx, o)
		if err != nil {
			live = nil // trying it tells what is wrong
		}
		result, _, err := tries.applyUnignored(ctx, o, known[key], false)
		changed[i] = podsDiffer(live, result) || podsDiffer(before[key], o)
		return r.failureOf(key, err)
	})
	switch f := failed.Worst(); {
	case f == nil, f.Kind == object.Deferred: // it comes by itself
	case f.Kind == object.Transient:
		return nil, f.Unwrap()
	default:
		return nil, &stopped{r.refusal(addonsv1.AddonFailed, f.Reason, f.Message)}
	}
	for i, o := range made.objects {
		if changed[i] {
			restarted = append(restarted, record.KeyOf(o))
		}
	}
	return restarted, nil
}

// podsDiffer reports whether the pods of a workload restart as its template changes. A CronJob's don't.
func podsDiffer(before, after *unstructured.Unstructured) bool {
	was, is := podTemplateOf(before), podTemplateOf(after)
	return was != nil && is != nil && after.GetKind() != "CronJob" && !equality.Semantic.DeepEqual(was.Object, is.Object)
}
