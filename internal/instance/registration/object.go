// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"fmt"
	"math"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/instance"
)

// take makes the instance's object, or finds out that the one that is there is
// this process's to go on with.
func (r *Registration) take(ctx context.Context) *obstacle {
	pi := &addonsv1.ProviderInstance{}
	asOf := r.o.Clock.Now()
	err := r.client.Get(ctx, r.key(), pi)
	switch {
	case apierrors.IsNotFound(err):
		return r.create(ctx)
	case err != nil:
		return &obstacle{reason: "APIServerUnavailable", message: fmt.Sprintf("reading ProviderInstance %s: %v", r.key(), err)}
	case r.ours(&pi.Spec), r.former.Read(pi, asOf) <= 0:
		r.object = pi
		return nil
	default:
		r.object = nil
		return &obstacle{reason: "HeldByPredecessor", standby: true, message: fmt.Sprintf(
			"ProviderInstance %s is held by %s, which is alive: this process waits until it ends, or is silent for %d s", r.key(), pi.Spec.Holder, pi.Spec.ExpirySeconds)}
	}
}

func (r *Registration) create(ctx context.Context) *obstacle {
	pi := &addonsv1.ProviderInstance{Spec: r.spec(addonsv1.ScopeWaiting)}
	pi.Namespace, pi.Name = r.o.Namespace, r.o.Name
	sent := r.o.Clock.Now()
	if err := r.client.Create(ctx, pi); err != nil {
		r.object = nil
		return &obstacle{reason: reasonOf(err), message: fmt.Sprintf("creating ProviderInstance %s: %v", r.key(), err)}
	}
	r.life.extend(sent)
	r.object = pi
	return nil
}

// write makes the object's spec this process's own, with a claim. It is refused if
// anything of the object changed since it was read.
func (r *Registration) write(ctx context.Context, claim addonsv1.ScopeClaim) error {
	next := r.object.DeepCopy()
	next.Spec = r.spec(claim)
	if equality.Semantic.DeepEqual(next.Spec, r.object.Spec) {
		return nil
	}
	before := r.object.Spec.Holder
	sent := r.o.Clock.Now()
	if err := r.client.Update(ctx, next); err != nil {
		return err
	}
	if claim == addonsv1.ScopeClaiming {
		r.life.begin(sent)
	} else {
		r.life.extend(sent)
	}
	r.object = next
	if before != r.holder {
		logf.FromContext(ctx).Info("Took the ProviderInstance over", "formerHolder", before)
		r.event(corev1.EventTypeNormal, "TakenOver", fmt.Sprintf("%s took over from %s, which ended without a word", r.holder, before))
	}
	return nil
}

// newHolder names this process as leases do: the host, which is the pod's name,
// and a random part.
func newHolder() string {
	host, err := os.Hostname()
	if err != nil || len(host) > 200 {
		host = "chandler"
	}
	return host + "_" + string(uuid.NewUUID())
}

func (r *Registration) key() client.ObjectKey {
	return types.NamespacedName{Namespace: r.o.Namespace, Name: r.o.Name}
}

// expirySeconds is written into the object, in whole seconds.
func (r *Registration) expirySeconds() int32 {
	return int32(math.Ceil((beatsToExpiry * r.o.Heartbeat).Seconds()))
}

// spec is what this process says of the instance.
func (r *Registration) spec(claim addonsv1.ScopeClaim) addonsv1.ProviderInstanceSpec {
	return addonsv1.ProviderInstanceSpec{
		Namespaces:    r.o.Scope.Namespaces,
		WatchFilter:   r.o.Scope.WatchFilter,
		Version:       r.o.Version,
		APIVersions:   []string{addonsv1.GroupVersion.Version},
		Holder:        r.holder,
		LeaseName:     r.o.LeaseName,
		Claim:         claim,
		ExpirySeconds: r.expirySeconds(),
	}
}

// ours says whether this process writes an object, or is the next leader of the
// instance it is of: then the Lease excludes its holder.
func (r *Registration) ours(spec *addonsv1.ProviderInstanceSpec) bool {
	return spec.Holder == r.holder || r.o.LeaseName != "" && spec.LeaseName == r.o.LeaseName && instance.ScopeOf(spec).Equal(r.o.Scope)
}
