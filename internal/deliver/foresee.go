// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"context"

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

func (r revisionMaker) foresee(ctx context.Context) ([]ObjectKey, error) {
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
	tries := &application{call: r.call}
	failed := object.InParallel(len(made.objects), func(i int) *object.Failure {
		key := record.KeyOf(made.objects[i])
		_, _, err := tries.applyUnignored(ctx, made.objects[i], known[key], false)
		return r.failureOf(key, err)
	})
	if f := failed.Worst(); f != nil {
		return nil, &stopped{r.refusal(addonsv1.AddonFailed, f.Reason, f.Message)}
	}
	return made.restarted, nil
}
