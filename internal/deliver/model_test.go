// SPDX-License-Identifier: Apache-2.0

package deliver_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
)

const (
	modelSteps  = 30
	modelRounds = 12 // in which a step has to come to its end; connections break in the first half of them
)

// TestModel installs, upgrades and removes three releases at random, and has four objects move between them, with cut
// connections and restarts. After each step a model says whose each object is, what is in it, and which stay the same.
// CHANDLER_MODEL_SEEDS is the number of seeds (make test-long).
func TestModel(t *testing.T) {
	seeds := 2
	if text := os.Getenv("CHANDLER_MODEL_SEEDS"); text != "" {
		var err error
		if seeds, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	for seed := range seeds {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			e := newEnv(t)
			m := &model{
				env: e, random: rand.New(rand.NewPCG(uint64(seed), 1)), ns: e.namespace(),
				owners: map[string]string{}, versions: map[string]int{}, uids: map[string]types.UID{},
			}
			for m.step = range modelSteps {
				m.turn()
			}
		})
	}
}

var (
	modelReleases = []string{"a", "b", "c"}
	modelObjects  = []string{"o1", "o2", "o3", "o4"}
)

// model knows what is to be in the cluster.
type model struct {
	*env
	random   *rand.Rand
	ns       string
	step     int
	owners   map[string]string // of objects: the release that is to have each
	versions map[string]int    // of releases
	uids     map[string]types.UID
}

// turn wants something else, brings the cluster there, and compares it with the model.
func (m *model) turn() {
	m.t.Helper()
	before := maps.Clone(m.owners)
	m.choose()
	installed := m.records(m.ns)
	switch wanted := m.wanted(); {
	case m.strive(wanted):
		m.compare(before, installed)
	case m.swaps(before):
		m.clear() // which needs an edit in between
	default:
		m.t.Fatalf("step %d comes to no end: from %v to %v", m.step, before, m.owners)
	}
}

// choose has objects stay, move or be dropped.
func (m *model) choose() {
	there := map[string]bool{}
	for _, name := range modelReleases {
		there[name] = m.random.IntN(4) > 0
	}
	for _, settings := range modelObjects {
		to, stays := modelReleases[m.random.IntN(len(modelReleases))], m.random.IntN(2) == 0
		switch {
		case stays && there[m.owners[settings]]:
		case there[to]:
			m.owners[settings] = to
		default:
			delete(m.owners, settings)
		}
	}
	for name := range m.wanted() {
		m.versions[name]++
	}
}

// wanted returns the objects of each release that is to be there.
func (m *model) wanted() map[string][]string {
	wanted := map[string][]string{}
	for _, settings := range modelObjects {
		if name := m.owners[settings]; name != "" {
			wanted[name] = append(wanted[name], settings)
		}
	}
	return wanted
}

// swaps reports whether an object moves between releases that both stay.
func (m *model) swaps(before map[string]string) bool {
	wanted := m.wanted()
	return slices.ContainsFunc(modelObjects, func(settings string) bool {
		from, to := before[settings], m.owners[settings]
		return from != "" && to != "" && from != to && len(wanted[from]) > 0
	})
}

func (m *model) valueOf(name string) string { return fmt.Sprintf("%s-%d", name, m.versions[name]) }

func (m *model) desired(name string, objects []string, leaving []deliver.Release) deliver.Desired {
	c := chart{version: strconv.Itoa(m.versions[name])}
	for _, settings := range objects {
		c.manifest += configMap(settings, m.valueOf(name))
	}
	want := m.wantNamed(name, m.ns, c)
	want.Leaving, want.DataPolicy = leaving, addonsv1.DataPolicyKeep
	return want
}

// strive calls the Deliverer as a controller does, until all is as wanted; false if it never is.
func (m *model) strive(wanted map[string][]string) bool {
	m.t.Helper()
	for round := range modelRounds {
		if m.random.IntN(3) == 0 {
			m.restart()
		}
		m.meter.mu.Lock()
		m.meter.writes, m.meter.failFrom, m.meter.done = 0, 0, m.random.IntN(2) == 0
		if round < modelRounds/2 && m.random.IntN(2) == 0 {
			m.meter.failFrom = 1 + m.random.IntN(8)
		}
		m.meter.mu.Unlock()
		isDone := m.round(wanted)
		m.restart() // which also lets the connection be
		m.clock.step(6 * time.Minute)
		if isDone {
			return true
		}
	}
	return false
}

// round has each release worked on once. Removals wait until all that are wanted have tried their objects.
func (m *model) round(wanted map[string][]string) (isDone bool) {
	var leaving []deliver.Release
	for _, r := range slices.SortedFunc(maps.Keys(m.records(m.ns)), func(a, b deliver.Release) int { return strings.Compare(a.Name, b.Name) }) {
		if len(wanted[r.Name]) == 0 {
			leaving = append(leaving, r)
		}
	}
	isDone, isTried := true, true
	for _, name := range modelReleases {
		if len(wanted[name]) == 0 {
			continue
		}
		o, err := m.d.Ensure(m.ctx, m.target, m.desired(name, wanted[name], leaving))
		if err != nil || o.Phase != addonsv1.AddonReady {
			isDone, isTried = false, isTried && err == nil && o.Applied
		}
	}
	for _, r := range leaving {
		if !isTried {
			return false
		}
		o, err := m.d.Remove(m.ctx, m.target, r, leaving...)
		isDone = isDone && err == nil && o.Gone
	}
	return isDone
}

// compare looks at each object. One that stays with its release, or is taken over from one that leaves, is the same.
func (m *model) compare(before map[string]string, installed map[deliver.Release]deliver.Summary) {
	m.t.Helper()
	wanted := m.wanted()
	for _, settings := range modelObjects {
		about := fmt.Sprintf("step %d: from %v to %v: %s", m.step, before, m.owners, settings)
		live, name, from := m.get("v1", "ConfigMap", m.ns, settings), m.owners[settings], before[settings]
		if name == "" {
			if live != nil {
				m.Expect(live.GetLabels()).NotTo(HaveKey(addonsv1.AddonLabel), "%s is left", about)
			}
			delete(m.uids, settings)
			continue
		}
		m.Expect(live).NotTo(BeNil(), about)
		m.Expect(live.GetLabels()).To(HaveKeyWithValue(addonsv1.AddonLabel, name), about)
		m.Expect(live.Object["data"]).To(Equal(map[string]any{"key": m.valueOf(name)}), about)
		var managers []string
		for _, entry := range live.GetManagedFields() {
			managers = append(managers, entry.Manager)
		}
		m.Expect(managers).To(Equal([]string{object.FieldManager(deliver.Release{Namespace: m.ns, Name: name})}), about)
		_, wasInstalled := installed[deliver.Release{Namespace: m.ns, Name: from}]
		if stays := from == name || from != "" && len(wanted[from]) == 0 && wasInstalled; stays && m.uids[settings] != "" {
			m.Expect(live.GetUID()).To(Equal(m.uids[settings]), "%s was made again", about)
		}
		m.uids[settings] = live.GetUID()
	}
}

// clear takes everything away, and forgets it.
func (m *model) clear() {
	m.t.Helper()
	for _, settings := range modelObjects {
		if live := m.get("v1", "ConfigMap", m.ns, settings); live != nil {
			m.delete(live)
		}
	}
	m.Expect(m.target.Client.DeleteAllOf(m.ctx, &corev1.Secret{}, client.InNamespace(m.ns))).To(Succeed())
	clear(m.owners)
	clear(m.uids)
	m.restart()
}
