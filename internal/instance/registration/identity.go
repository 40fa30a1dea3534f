// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"math"
	"os"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/instance"
)

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
