// SPDX-License-Identifier: Apache-2.0

package instances

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"sigs.k8s.io/cluster-api/util/conditions"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/audit"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/wait"
)

// How many random events there are, and how many in a second at most. The environment
// can ask for more of them, and for a seed.
const (
	randomEvents    = 2000
	eventsPerSecond = 50
	eventsEnv       = "CHANDLER_RANDOM_EVENTS"
	seedEnv         = "CHANDLER_RANDOM_SEED"
)

// TestRandomEvents lets users do 2,000 random things in three namespaces, while two
// instances manage one namespace each, and two share the third by filter.
func TestRandomEvents(t *testing.T) {
	long.Test(t)
	t.Parallel()
	seed, events := uint64(time.Now().UnixNano()), randomEvents
	if text := os.Getenv(seedEnv); text != "" {
		seed, _ = strconv.ParseUint(text, 10, 64)
	}
	if text := os.Getenv(eventsEnv); text != "" {
		events, _ = strconv.Atoi(text)
	}
	t.Logf("%s=%d %s=%d", seedEnv, seed, eventsEnv, events)

	everything, filters := []string{"", "blue", "green"}, []string{"", "red", "blue", "blue", "green", "green"}
	m := newModel(seed,
		&namespaceModel{name: "team-a", weight: 1, filters: everything, served: everything},
		&namespaceModel{name: "team-b", weight: 1, filters: everything, served: everything},
		&namespaceModel{name: "team-c", weight: 2, filters: filters, served: []string{"blue", "green"}, common: []string{addonsv1.SharedWatchFilter}},
	)
	start := len(m.steps)
	m.run(events)
	random := len(m.steps)
	m.end()

	w := newWorld(t, worldOptions{workers: true, shared: usual.shared})
	u := &user{ctx: t.Context(), w: w}
	var begin [servers]audit.Mark
	for i := range servers {
		u.servers[i] = workload(t, i)
		begin[i] = u.servers[i].Audit.Mark(t)
	}
	var all []*instance
	for number, o := range []overlay{
		{name: "a", namespaces: []string{"team-a"}},
		{name: "b", namespaces: []string{"team-b"}},
		{name: "blue", namespaces: []string{"team-c"}, filter: "blue"},
		{name: "green", namespaces: []string{"team-c"}, filter: "green"},
	} {
		i := w.install(o)
		i.version = versionNumber(number)
		i.start(append([]string{"--render-workers=1"}, unhurried...)...)
		all = append(all, i)
	}
	for _, i := range all {
		i.awaitReady()
	}

	began := time.Now()
	for _, part := range [][]step{m.steps[:start], m.steps[start:random], m.steps[random:]} {
		must.Succeed(t, u.take(part, eventsPerSecond))
	}
	took := time.Since(began)
	converged := wait.Until(t, patience, "in the end each cluster has exactly what its stacks say", func() error { return u.converged(m) })
	t.Logf("%d events in %s, and %s until all was as it should be", random-start, took.Round(time.Second), converged.Round(time.Millisecond))

	compared, addons := m.size()
	t.Logf("%d Clusters compared, with %d add-ons", compared, addons)

	log := w.Audit.Beginning().Requests(t, func(*event) bool { return true })
	j := newEvaluate(w, log, all...)
	j.management(log)
	for _, s := range begin {
		j.workload(s.Requests(t, wrote))
	}
	t.Logf("%d writes by instances; the latest one was %s after its scope had ended; up to %s are allowed",
		j.evaluated, j.latest.Round(time.Millisecond), j.grace.Round(time.Millisecond))
	if len(j.verdicts) > 0 {
		t.Errorf("instances did %d things outside of their scopes, the first are:\n%s", len(j.verdicts), lines(j.verdicts[:min(len(j.verdicts), 20)]))
	}
}

// converged compares each Cluster that an instance manages with the model.
func (u *user) converged(m *model) error {
	var wrong []error
	for _, n := range m.namespaces {
		for i := range n.clusters {
			if c := &n.clusters[i]; c.exists && n.serves(c.filter) {
				wrong = append(wrong, u.compare(n, i))
			}
		}
	}
	return errors.Join(wrong...)
}

// compare compares one Cluster's add-ons, and its ClusterAddon, with the model.
func (u *user) compare(n *namespaceModel, i int) error {
	wanted, allowed := n.expected(i)
	found, err := installed(u.ctx, u.servers[serverOf(i)], u.w.halfNamespace(n.name, halfOf(i)))
	if err != nil {
		return err
	}
	for _, name := range allowed {
		delete(found, name)
	}
	name := n.name + "/" + clusterName(i)
	if !maps.Equal(found, wanted) {
		return fmt.Errorf("Cluster %s of filter %q has %v; expected %v", name, n.clusters[i].filter, found, wanted)
	}
	ca, err := u.w.clusterAddon(u.ctx, n.name, clusterName(i))
	if err != nil {
		return err
	}
	if ca.Status.ObservedGeneration != ca.Generation {
		return fmt.Errorf("ClusterAddon %s is at generation %d, its status at %d", name, ca.Generation, ca.Status.ObservedGeneration)
	}
	for _, a := range ca.Status.Addons {
		if _, ok := wanted[a.Name]; ok && a.Phase != addonsv1.AddonReady || !ok && !slices.Contains(allowed, a.Name) {
			return fmt.Errorf("ClusterAddon %s has add-on %s: %s, %s: %s", name, a.Name, a.Phase, a.Reason, a.Message)
		}
	}
	if c := conditions.Get(ca, addonsv1.ControlPlaneInitializedCondition); c == nil || c.Status != "True" {
		return fmt.Errorf("ClusterAddon %s isn't up to date: %+v", name, c)
	}
	return nil
}
