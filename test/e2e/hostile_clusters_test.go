// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// hostileFor is how long the memory of the manager is looked at.
func hostileFor(t *testing.T) time.Duration {
	t.Helper()
	value := os.Getenv("CHANDLER_E2E_HOSTILE")
	if value == "" {
		return 20 * time.Second
	}
	d, err := time.ParseDuration(value)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// mostMemory is how much more memory, in MiB, the manager may have beside hostile clusters.
const mostMemory = 150

// TestHostileClusters has API servers that misbehave beside one that doesn't: these harm
// neither the manager, nor the cluster that comes after them.
func TestHostileClusters(t *testing.T) {
	g := NewWithT(t)
	tn := newTenant(t)
	asking := chart{"templates/text.yaml": configMap("{{ .Release.Name }}", `{{ .Capabilities.APIVersions.Has "x.example.com/v1/Thing" | quote }}`)}
	tn.makeStack("platform", nil, tn.addon("asking", tn.writeChart("asking", "1.0.0", asking)))
	tn.makeCluster("good", workloadServer(t, 0), nil)
	m := tn.startManager()
	tn.awaitCluster("good", "it is alone", ready("asking"))
	before, most := memoryOf(t, m), 0

	servers := map[string]*hostileServer{}
	for name, misbehave := range misbehaviours() {
		servers[name] = startHostile(t, misbehave)
		tn.writeKubeconfig(name, servers[name].kubeconfig(t))
		tn.makeClusterObject(name, nil)
	}
	end := time.Now().Add(hostileFor(t))
	poll(t, hostileFor(t)+patience, "each is to misbehave, for a while", func() error {
		most = max(most, memoryOf(t, m))
		for name, s := range servers {
			if s.misbehaved.Load() == 0 {
				return fmt.Errorf("%s hasn't misbehaved", name)
			}
		}
		if time.Now().Before(end) {
			return errors.New("there is time left")
		}
		return nil
	})
	tn.makeCluster("late", workloadServer(t, 1), nil)
	tn.awaitCluster("late", "a cluster isn't harmed by hostile ones", ready("asking"))
	tn.awaitCluster("bomb", "what is too large is named", phase("asking", addonsv1.AddonPending, "ResponseTooLarge", "GET /api was answered with more than 4096 KiB"))
	tn.awaitCluster("many-groups", "too many kinds are told", phase("asking", addonsv1.AddonPending, "TooManyKinds", "1000"))
	tn.awaitCluster("forgets", "lost records are told", phase("asking", addonsv1.AddonPending, "RecordLost", "gone after each installation"))

	g.Expect(m.Ended()).To(BeNil(), "the manager lives")
	g.Expect(servers["changes-kinds"].discoveries.Load()).To(BeNumerically("<=", 8), "discoveries while kinds change all the time")
	g.Expect(servers["forgets"].writes(http.MethodPost, "/secrets")).To(BeNumerically("<=", 10), "installations that don't last")
	most = max(most, memoryOf(t, m))
	t.Logf("%d MiB before, at most %d MiB", before, most)
	g.Expect(most-before).To(BeNumerically("<=", mostMemory), "MiB more than before")
}

// misbehaviours are by the names of Clusters.
func misbehaviours() map[string]misbehaviour {
	records := func(r *http.Request) bool { return r.URL.Path == "/api/v1/secrets" }
	listing := func(r *http.Request) bool { return records(r) && !isWatch(r) }
	watching := func(r *http.Request) bool { return records(r) && isWatch(r) }
	kinds := func(r *http.Request) bool {
		return strings.HasSuffix(r.URL.Path, "/customresourcedefinitions") && isWatch(r)
	}
	when := func(is func(*http.Request) bool, do http.HandlerFunc) misbehaviour {
		return func(r *http.Request) http.HandlerFunc {
			if is(r) {
				return do
			}
			return nil
		}
	}
	path := func(path string) func(*http.Request) bool {
		return func(r *http.Request) bool { return r.URL.Path == path }
	}
	spaces := strings.Repeat(" ", 1<<20)
	groups := manyGroups(50_000)
	event := func(name string) string {
		return fmt.Sprintf(`{"type":"ADDED","object":{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":%q,"namespace":"x","uid":%q,"resourceVersion":"2","annotations":{"addons.cluster.x-k8s.io/digest":"%s"}}}}`+"\n",
			name, name, strings.Repeat("x", 4000))
	}
	item := `{"metadata":{"name":"x","namespace":"x","annotations":{"x":"` + strings.Repeat("y", 1<<18) + `"}}}`
	head := `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"1","continue":"x"},"items":[`
	return map[string]misbehaviour{
		"bomb": when(path("/api"), func(w http.ResponseWriter, _ *http.Request) {
			endless(w, `{"kind":"APIVersions"`, func(int) string { return spaces })
		}),
		"endless-list": when(listing, func(w http.ResponseWriter, _ *http.Request) {
			endless(w, head, func(int) string { return item + "," })
		}),
		"endless-pages": when(listing, func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, head+item+`]}`)
		}),
		"endless-events": when(watching, func(w http.ResponseWriter, _ *http.Request) {
			endless(w, "", func(i int) string { return event(strconv.Itoa(i)) })
		}),
		"one-event": when(watching, func(w http.ResponseWriter, _ *http.Request) {
			endless(w, `{"type":"ADDED","object":{"metadata":{"name":"`, func(int) string { return item[60:1000] })
		}),
		"many-groups": when(func(r *http.Request) bool { return strings.Count(r.URL.Path, "/") == 1 }, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/apis" {
				_, _ = io.WriteString(w, groups)
				return
			}
			_, _ = io.WriteString(w, `{"kind":"APIVersions","versions":["v1"]}`)
		}),
		"retry-after": when(listing, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "1000000")
			w.WriteHeader(http.StatusTooManyRequests)
		}),
		"hangs": when(listing, func(w http.ResponseWriter, r *http.Request) {
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}),
		"trickles": when(listing, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, head)
			each(r, 100*time.Millisecond, func(int) { _, _ = io.WriteString(w, " "); w.(http.Flusher).Flush() })
		}),
		"unauthorized": when(func(*http.Request) bool { return true }, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusUnauthorized)
		}),
		"forgets": when(watching, func(w http.ResponseWriter, r *http.Request) {
			each(r, 20*time.Millisecond, func(int) { _, _ = io.WriteString(w, event("x")); w.(http.Flusher).Flush() })
		}),
		"changes-kinds": when(kinds, func(w http.ResponseWriter, r *http.Request) {
			each(r, 20*time.Millisecond, func(i int) { _, _ = io.WriteString(w, event(strconv.Itoa(i))); w.(http.Flusher).Flush() })
		}),
		"slow": when(func(r *http.Request) bool { return !records(r) && strings.Count(r.URL.Path, "/") > 1 }, func(w http.ResponseWriter, r *http.Request) {
			select {
			case <-r.Context().Done():
			case <-time.After(11 * time.Second):
				w.WriteHeader(http.StatusInternalServerError)
			}
		}),
	}
}

// endless writes, compressed, until nobody reads.
func endless(w http.ResponseWriter, head string, next func(i int) string) {
	w.Header().Set("Content-Encoding", "gzip")
	z, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
	if err == nil {
		_, err = io.WriteString(z, head)
	}
	for i := 0; err == nil; i++ {
		_, err = io.WriteString(z, next(i))
	}
}

// each does something again and again, as long as somebody reads.
func each(r *http.Request, pause time.Duration, do func(i int)) {
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for i := 0; ; i++ {
		select {
		case <-r.Context().Done():
			return
		case <-tick.C:
			do(i)
		}
	}
}

// manyGroups is what a server says that doesn't aggregate its discovery.
func manyGroups(n int) string {
	groups := make([]string, n)
	for i := range groups {
		groups[i] = fmt.Sprintf(`{"name":"g%d","versions":[{"groupVersion":"g%d/v1","version":"v1"}]}`, i, i)
	}
	return `{"kind":"APIGroupList","apiVersion":"v1","groups":[` + strings.Join(groups, ",") + `]}`
}

// memoryOf is what the manager has in memory, in MiB, without its render workers.
func memoryOf(t *testing.T, m *manager) int {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", m.PID()))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		if value, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kib, err := strconv.Atoi(strings.Fields(value)[0])
			if err != nil {
				t.Fatal(err)
			}
			return kib >> 10
		}
	}
	t.Fatal("the manager's memory isn't known")
	return 0
}
