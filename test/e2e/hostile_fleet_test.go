// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/fleet/fleettest"
	"github.com/cluster-chandler/chandler/test/virtualcluster"
)

// hostileWords are servers that answer in time, and well-formed, with words that are to do harm.
func hostileWords() map[string]fleettest.Misbehaviour {
	answer := func(is func(*http.Request) bool, code int, text string) fleettest.Misbehaviour {
		return func(r *http.Request) http.HandlerFunc {
			if !is(r) {
				return nil
			}
			return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code); _, _ = io.WriteString(w, text) }
		}
	}
	listing := func(r *http.Request) bool {
		return r.URL.Path == "/api/v1/secrets" && r.URL.Query().Get("watch") == ""
	}
	var kinds []string
	for i := range 2000 {
		kinds = append(kinds, fmt.Sprintf("Kind%d.v1.g%d.example.com", i, i))
	}
	records := func(n int, annotations string) string {
		items := make([]string, n)
		for i := range items {
			items[i] = fmt.Sprintf(`{"metadata":{"name":"sh.helm.release.v1.x%d.v1","namespace":"x","uid":"x%d","resourceVersion":"1","labels":{"owner":"helm","name":"x%d","version":"1","status":"deployed","addons.cluster.x-k8s.io/addon":"x%d","addons.cluster.x-k8s.io/addon-namespace":"x"},"annotations":{"addons.cluster.x-k8s.io/digest":"x","addons.cluster.x-k8s.io/record-format":"1",%s}}}`,
				i, i, i, i, annotations)
		}
		return `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"1"},"items":[` + strings.Join(items, ",") + `]}`
	}
	return map[string]fleettest.Misbehaviour{
		"version": func(*http.Request) http.HandlerFunc { return nil },
		"kinds":   answer(listing, http.StatusOK, records(2, fmt.Sprintf(`"addons.cluster.x-k8s.io/kinds":%q`, strings.Join(kinds, ",")))),
		"message": answer(func(r *http.Request) bool { return r.Method == http.MethodPatch || r.Method == http.MethodPost }, http.StatusUnprocessableEntity,
			fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422,"message":%q}`, strings.Repeat("no ", 1<<18))),
		"records": answer(listing, http.StatusOK, records(10_000, `"addons.cluster.x-k8s.io/owner":"x/y"`)),
	}
}

// TestHostileFleet has twelve hostile clusters: four with words that are to do harm, twice, and four with a large chart
// that is never ready. The manager's memory stays bounded, and other clusters are served about as soon as without them.
func TestHostileFleet(t *testing.T) {
	g := NewWithT(t)
	f := startFairness(t)
	authority := virtualcluster.NewAuthority(t)
	alone := f.median(t, authority, "alone")
	rest, most := memoryOf(t, f.manager), 0
	large := f.writeChart("large", "1.0.0", chart{"templates/x.yaml": "{{ range $i := until 4500 }}\n---\n" +
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c{{ $i }}}\ndata: {x: {{ repeat 3000 \"x\" }}}\n{{ end }}"})
	never := f.addon("large", large, func(a *addonsv1.Addon) {
		a.Readiness = []addonsv1.ReadinessCheck{{APIVersion: "v1", Kind: "ConfigMap", Expression: "self.data.x == 'never'"}}
	})
	f.makeStack("never", labels("who=never"), never)
	f.makeStack("words", labels("who=words"), f.addon("asking", f.writeChart("asking", "1.0.0", askingChart)))
	servers := map[string]*fleettest.Server{}
	start := func(name, who string, misbehave fleettest.Misbehaviour) {
		servers[name] = fleettest.Start(t, misbehave)
		servers[name].Remembers.Store(who == "never")
		if strings.HasPrefix(name, "version") {
			servers[name].Version.Store(ptr.To("v1.99999999999.0"))
		}
		f.writeKubeconfig(name, servers[name].Kubeconfig(t))
		f.makeClusterObject(name, labels("who="+who))
	}
	for name, misbehave := range hostileWords() {
		start(name+"-1", "words", misbehave)
		start(name+"-2", "words", misbehave)
	}
	for i := range 4 {
		start(fmt.Sprint("never-", i), "never", func(*http.Request) http.HandlerFunc { return nil })
	}
	watchMemory := func() { most = max(most, memoryOf(t, f.manager)) }
	poll(t, time.Minute, "each is to do its harm", func() error {
		watchMemory()
		for name, s := range servers {
			harmed := s.Misbehaved.Load() > 0
			if strings.HasPrefix(name, "never") || strings.HasPrefix(name, "version") {
				harmed = s.Requests("GET /version", "") > 0
			}
			if !harmed {
				return fmt.Errorf("%s hasn't", name)
			}
		}
		return nil
	})
	beside := f.median(t, authority, "beside")
	for end := time.Now().Add(2 * hostileFor(t)); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		watchMemory()
	}
	t.Logf("%d MiB at rest, at most %d; a good cluster is ready after %s, beside them after %s (%.2f)",
		rest, most, alone, beside, beside.Seconds()/alone.Seconds())
	g.Expect(f.manager.Ended()).To(BeNil(), "the manager lives")
	g.Expect(most-rest).To(BeNumerically("<=", mostMemory), "MiB more than at rest")
	g.Expect(beside).To(BeNumerically("<=", 3*alone/2))
}

// median returns how long a new cluster usually takes to be ready: single ones differ by a factor of two. Each of them is
// a part of one API server.
func (f *fairness) median(t *testing.T, of *virtualcluster.Authority, name string) time.Duration {
	t.Helper()
	var took []time.Duration
	for i := range 25 {
		name := fmt.Sprint(name, "-", i)
		f.writeKubeconfig(name, of.New(t, f.userOn(workloadServer(t, 1), name), name).Kubeconfig)
		start := time.Now()
		f.makeClusterObject(name, labels("who=good"))
		f.awaitCluster(name, "it is served", ready("settings"))
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	return took[len(took)/2]
}

// fairness is a manager with a cluster of its own, whose time to be ready alone is known.
type fairness struct {
	*tenant
	manager *manager
	path    string
	alone   time.Duration
}

func startFairness(t *testing.T, flags ...string) *fairness {
	t.Helper()
	if os.Getenv("CHANDLER_E2E_HOSTILE") == "" {
		t.Skip("it takes minutes, and a machine that does nothing else: make test-hostile")
	}
	tn := newTenant(t)
	f := &fairness{tenant: tn, path: tn.writeChart("settings", "1.0.0", configMapChart)}
	f.manager = tn.startManager(flags...)
	tn.makeStack("good", labels("who=good"), tn.addon("settings", f.path))
	f.alone = f.served(t, "good-0", workloadServer(t, 0))
	return f
}

// served returns how long a new cluster takes to be ready.
func (f *fairness) served(t *testing.T, name string, s *server) time.Duration {
	t.Helper()
	start := time.Now()
	f.makeCluster(name, s, labels("who=good"))
	f.awaitCluster(name, "it is served", ready("settings"))
	return time.Since(start)
}

// besides makes a stack with add-ons, and clusters of one server that are to run it.
func (f *fairness) besides(t *testing.T, clusters int, misbehave fleettest.Misbehaviour, addons ...addonsv1.Addon) *fleettest.Server {
	t.Helper()
	f.makeStack("bad", labels("who=bad"), addons...)
	s := fleettest.Start(t, misbehave)
	for i := range clusters {
		name := fmt.Sprint("bad-", i)
		f.writeKubeconfig(name, s.Kubeconfig(t))
		f.makeClusterObject(name, labels("who=bad"))
	}
	return s
}

// TestSlowClusters has more clusters than there are workers, each of which answers just in
// time for the request to go on.
func TestSlowClusters(t *testing.T) {
	g := NewWithT(t)
	f := startFairness(t)
	addons := make([]addonsv1.Addon, 20)
	for i := range addons {
		addons[i] = f.addon(fmt.Sprint("a", i), f.path)
	}
	slow := f.besides(t, 60, fleettest.Misbehaviours("/api/v1/secrets")["slow"], addons...)
	poll(t, patience, "slow passes are to hold workers", func() error {
		if n := slow.Misbehaved.Load(); n < 60 {
			return fmt.Errorf("%d slow answers", n)
		}
		return nil
	})
	poll(t, patience, "but half of them at most", func() error {
		active, err := f.manager.Sum("controller_runtime_active_workers", `controller="clusteraddon"`)
		if err == nil && active > 25 {
			err = fmt.Errorf("%v workers are held", active)
		}
		return err
	})
	beside := f.served(t, "good-1", workloadServer(t, 1))
	t.Logf("alone %s, beside slow ones %s", f.alone, beside)
	g.Expect(beside).To(BeNumerically("<=", 3*f.alone))
}
