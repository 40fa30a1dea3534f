// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/checks"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/releases"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/upkeep"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/wanted"
)

// checks returns what evaluates conditions of an add-on.
func (q Delivery) checks(a *wanted.Addon) checks.Checks {
	return checks.Checks{Workload: q.Workload, Addon: a, Memory: &q.Memory.Of(a.Release()).Checks, Now: q.Now}
}

// repairs returns what repairs changes of an add-on by others.
func (q Delivery) repairs(a *wanted.Addon) upkeep.Repair {
	return upkeep.Repair{
		Deliverer: q.Deliverer, Watched: q.Watched, Workload: q.Workload, Addon: a, Memory: &q.Memory.Of(a.Release()).Drift, Limiter: q.Memory.Repairs,
		Proofs: q.Proofs, Again: q.Again, Now: q.Now,
	}
}

// health returns what evaluates the workloads of an add-on.
func (q Delivery) health(a *wanted.Addon) upkeep.Health {
	return upkeep.Health{
		Watched: q.Watched, Workload: q.Workload, Addon: a, Memory: &q.Memory.Of(a.Release()).Health, Was: q.previous(a.Status()), Now: q.Now,
	}
}

// terms returns what brings changed terms into records.
func (q Delivery) terms() releases.Terms {
	return releases.Terms{Deliverer: q.Deliverer, Target: q.Workload.Target(), UID: q.ClusterAddon.UID, Proofs: q.Proofs}
}
