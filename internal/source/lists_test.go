// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/source/helm"
	"github.com/cluster-chandler/chandler/internal/source/lists"
	"github.com/cluster-chandler/chandler/internal/source/reference"
	"github.com/cluster-chandler/chandler/internal/source/room"
)

// manyTags is a page with as many tags as may be, each as long as may be.
func manyTags(n int) []byte {
	tags := make([]string, 0, n)
	for i := range n {
		tags = append(tags, longVersion(i))
	}
	page, err := json.Marshal(map[string]any{"name": "charts/demo", "tags": tags})
	if err != nil {
		panic(err)
	}
	return page
}

func longVersion(i int) string {
	return fmt.Sprintf("1.%06d.0-%s", i+100_000, strings.Repeat("a", 100))
}

// late sends all but the end, and that after a while.
func late(body []byte, pause time.Duration) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		end := len(body) - 16
		_, _ = w.Write(body[:end])
		_ = http.NewResponseController(w).Flush()
		time.Sleep(pause)
		_, _ = w.Write(body[end:])
	}
}

// inManyPlaces are references to charts, each at a place of its own at the server.
func inManyPlaces(kind string, server *httptest.Server, n int) []reference.Reference {
	refs := make([]reference.Reference, 0, n)
	for i := range n {
		var ref reference.Reference
		switch kind {
		case "oci":
			ref = inRegistry(fmt.Sprintf("oci://%s/%d/demo", strings.TrimPrefix(server.URL, "http://"), i), ">=0-0")
			ref.Chart.OCI.PlainHTTP = ptr.To(true)
		case "helm":
			ref = inRepository(fmt.Sprintf("%s/%d", server.URL, i), ">=0-0")
			ref.Chart.Helm.PlainHTTP = ptr.To(true)
		case "github":
			ref = reference.Reference{Namespace: "team-a", Chart: addonsv1.ChartSource{Version: ">=0-0", GitHub: &addonsv1.GitHubSource{
				URL: fmt.Sprintf("%s/org/demo-%d", server.URL, i), APIURL: server.URL, PlainHTTP: ptr.To(true),
			}}}
		}
		refs = append(refs, ref)
	}
	return refs
}

// newestOfAll looks for the newest version of each at once.
func newestOfAll(t *testing.T, sources *Sources, refs []reference.Reference, notBefore time.Time) (found []string, failed []error) {
	t.Helper()
	found, failed = make([]string, len(refs)), make([]error, len(refs))
	var all sync.WaitGroup
	for i, ref := range refs {
		all.Go(func() { found[i], failed[i] = newest(t, sources, ref, notBefore) })
	}
	all.Wait()
	return found, failed
}

// indexOf is an index in YAML and in JSON, with much of versions.
func indexOf(inJSON bool) []byte {
	var text strings.Builder
	start, item, end := "entries:\n  demo:\n", "  - version: 1.%d.0-0\n    urls: [%s.tgz]\n", ""
	if inJSON {
		start, item, end = `{"entries":{"demo":[`, `{"version":"1.%d.0-0","urls":["%s.tgz"]},`, `{"version":"1.0.0","urls":["x"]}]}}`
	}
	text.WriteString(start)
	for i := range 7_000 {
		fmt.Fprintf(&text, item, i, strings.Repeat("b", 700))
	}
	text.WriteString(end)
	return []byte(text.String())
}

// pageOfReleases has as many releases as may be, with notes.
func pageOfReleases() []byte {
	var text strings.Builder
	text.WriteString("[")
	for i := range 99 {
		fmt.Fprintf(&text, `{"tag_name":"1.%d.0-0","body":"%s"},`, i, strings.Repeat("c", 40_000))
	}
	text.WriteString(`{"tag_name":"1.0.0"}]`)
	return []byte(text.String())
}

func TestMemoryOfLists(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(20)) // what isn't used any more doesn't matter here
	const many = 12
	for name, tc := range map[string]struct {
		kind string
		body func() []byte
		most int64 // MiB; those that took no room would take half as much again
		lost bool  // it is no list that is accepted
	}{
		"tags":             {"oci", func() []byte { return manyTags(33_000) }, 30, false},
		"an index":         {"helm", func() []byte { return indexOf(false) }, 45, false},
		"an index in JSON": {"helm", func() []byte { return indexOf(true) }, 45, false},
		"one large version in JSON": {"helm", func() []byte {
			return []byte(`{"entries":{"demo":[{"version":"1.0.0","urls":["x"],"description":"` + strings.Repeat("d", 12<<20) + `"}]}}`)
		}, 45, true},
		"a page of releases":         {"github", pageOfReleases, 160, false},
		"tags that are one long one": {"oci", func() []byte { return []byte(`{"tags":["` + strings.Repeat("e", 14<<20) + `"]}`) }, 45, true},
		"tags in deep brackets":      {"oci", func() []byte { return []byte(`{"x":` + strings.Repeat("[", 14<<20)) }, 45, true},
		"an index in deep brackets":  {"helm", func() []byte { return []byte(`{"x":` + strings.Repeat("[", 14<<20)) }, 45, true},
	} {
		t.Run(name, func(t *testing.T) {
			body := tc.body()
			server := serving(t, late(body, 200*time.Millisecond))
			sources, clock := remoteSources(t, Options{})
			refs := inManyPlaces(tc.kind, server, many)
			sources.remote.lists = lists.New(1) // what is kept is bounded anyway
			sources.remote.places.indexes = helm.NewIndexes(sources.limits, clock, sources.remote.room, 1)
			peak := watchHeap()
			_, failed := newestOfAll(t, sources, refs, clock.Now())
			most := peak()
			t.Logf("%d lists of %d MiB at once take %d MiB: %v", many, len(body)>>20, most>>20, failed[0])
			if most > tc.most<<20 {
				t.Errorf("%d lists of %d MiB at once take %d MiB", many, len(body)>>20, most>>20)
			}
			for _, err := range failed {
				if (err != nil) != tc.lost {
					t.Errorf("got %v", err)
				}
			}
			for _, room := range []*room.Room{sources.remote.room, sources.remote.lists.Room} {
				if !room.TryAcquire(room.Size) {
					t.Error("not all room is given back")
				}
			}
		})
	}
}

// A stack may follow many charts, and all get their versions soon if the host is fast.
func TestManyListsOfAFastHost(t *testing.T) {
	for _, n := range []int{1_000, 5_000} {
		body := manyTags(n)
		var listed atomic.Int64
		server := serving(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			listed.Add(1)
			_, _ = w.Write(body)
		}))
		sources, clock := remoteSources(t, Options{})
		begun := time.Now()
		found, failed := newestOfAll(t, sources, inManyPlaces("oci", server, 60), clock.Now())
		took := time.Since(begun)
		t.Logf("60 lists of %d tags took %s", n, took.Round(time.Millisecond))
		if took > 20*time.Second {
			t.Errorf("60 lists of %d tags took %s", n, took)
		}
		for i := range found {
			if found[i] != longVersion(n-1) || failed[i] != nil {
				t.Errorf("found %q, %v", found[i], failed[i])
			}
		}
		if listed.Load() != 60 {
			t.Errorf("%d lists were asked for", listed.Load())
		}
	}
}

// A host that doesn't answer keeps nobody from lists of other hosts.
func TestSilentHostHoldsUpNoOthers(t *testing.T) {
	let := make(chan struct{})
	silent := serving(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-let }))
	defer close(let)
	other := serving(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { sendTags(w, []string{"1.0.0"}) }))
	sources, clock := remoteSources(t, Options{})
	for _, ref := range inManyPlaces("oci", silent, 200) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		_, _ = sources.Newest(ctx, ref, rangeOf(t, ">=0-0"), clock.Now())
		cancel()
	}
	begun := time.Now()
	expectNewest(t, sources, inManyPlaces("oci", other, 1)[0], clock.Now(), "1.0.0")
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("it took %s", took)
	}
}

// Nor do many such hosts, whether they say nothing at all or stop in the midst of it.
func TestSilentHostsHoldUpNoOthers(t *testing.T) {
	for begins, start := range map[string]string{"silent": "", "silent from then on": `{"tags":["1.0.0",`} {
		for _, kind := range []string{"oci", "helm", "github"} {
			t.Run(kind+" "+begins, func(t *testing.T) {
				sources, clock := remoteSources(t, Options{})
				atOnce := sources.remote.lists.Starts.Size / room.Little
				let, asked := make(chan struct{}), make(chan struct{}, 2*atOnce)
				handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					_, _ = w.Write([]byte(start))
					if start != "" {
						_ = http.NewResponseController(w).Flush()
					}
					asked <- struct{}{}
					<-let
				})
				sources.remote.timeout = 8 * time.Second
				sources.remote.lists.Starts.PaceAfter = 500 * time.Millisecond
				for range 2 * atOnce {
					ref := inManyPlaces(kind, serving(t, handler), 1)[0]
					ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
					_, _ = sources.Newest(ctx, ref, rangeOf(t, ">=0-0"), clock.Now())
					cancel()
				}
				defer close(let)
				for range atOnce {
					<-asked
				}
				other := serving(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { sendTags(w, []string{"1.0.0"}) }))
				begun := time.Now()
				expectNewest(t, sources, inManyPlaces("oci", other, 1)[0], clock.Now(), "1.0.0")
				if took := time.Since(begun); took > 5*time.Second {
					t.Errorf("it took %s", took)
				}
			})
		}
	}
}

// Lists that are too large to be kept, all of them, are asked for once by each look,
// though nobody waits for them: what was to be known of them is found by who comes again.
func TestLargeListsLand(t *testing.T) {
	body := manyTags(99_000)
	var listed atomic.Int64
	server := serving(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		listed.Add(1)
		_, _ = w.Write(body)
	}))
	sources, clock := remoteSources(t, Options{})
	refs := inManyPlaces("oci", server, 4)
	begun, notBefore := time.Now(), clock.Now()
	answered := map[int]bool{}
	for len(answered) < 2*len(refs) && time.Since(begun) < time.Minute {
		for i, ref := range refs {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			if got, err := sources.Newest(ctx, ref, rangeOf(t, ">=0-0"), notBefore); err == nil {
				if got != longVersion(98_999) {
					t.Fatalf("newest is %q", got)
				}
				answered[2*i] = true
				withdrawn, err := sources.Withdrawn(ctx, ref, rangeOf(t, ">=0-0"), longVersion(7), notBefore)
				if withdrawn {
					t.Fatal("it is there")
				}
				if err == nil {
					answered[2*i+1] = true
				}
			}
			cancel()
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Logf("%d of 8 questions were answered, with %d lists", len(answered), listed.Load())
	if len(answered) < 2*len(refs) {
		t.Errorf("%d of 8 questions were answered", len(answered))
	}
	if listed.Load() > 8 {
		t.Errorf("%d lists were asked for", listed.Load())
	}
}

// Whoever asks for what there is now doesn't get what others found who began before.
func TestLookIsNoOlderThanItIsAskedFor(t *testing.T) {
	for _, kind := range []string{"helm", "github", "oci"} {
		t.Run(kind, func(t *testing.T) {
			let, begun := make(chan struct{}), make(chan struct{}, 8)
			var version atomic.Value
			version.Store("1.0.0")
			server := serving(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				v := version.Load().(string) // as it is when it is asked for
				begun <- struct{}{}
				<-let
				switch kind {
				case "helm":
					_, _ = fmt.Fprintf(w, "entries:\n  demo:\n  - {version: %s, urls: [x.tgz]}\n", v)
				case "github":
					_, _ = fmt.Fprintf(w, `[{"tag_name":%q}]`, v)
				default:
					sendTags(w, []string{v})
				}
			}))
			sources, clock := remoteSources(t, Options{})
			ref := inManyPlaces(kind, server, 1)[0]
			var others sync.WaitGroup
			others.Go(func() { expectNewest(t, sources, ref, clock.Now().Add(-sharedFor), "1.0.0") })
			<-begun
			clock.Step(10 * time.Millisecond)
			version.Store("1.1.0")
			asked := clock.Now()
			others.Go(func() { expectNewest(t, sources, ref, asked, "1.1.0") })
			time.Sleep(100 * time.Millisecond) // it joins
			clock.Step(10 * time.Millisecond)
			close(let)
			others.Wait()
			clock.Step(10 * time.Millisecond)
			expectNewest(t, sources, ref, asked, "1.1.0")
		})
	}
}

// What others were told within half a minute does for a turn, but is no newer for that.
func TestSharedListKeepsItsAge(t *testing.T) {
	for _, kind := range []string{"helm", "github"} {
		t.Run(kind, func(t *testing.T) {
			var version atomic.Value
			version.Store("1.0.0")
			server := serving(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if v := version.Load().(string); kind == "helm" {
					_, _ = fmt.Fprintf(w, "entries:\n  demo:\n  - {version: %s, urls: [x.tgz]}\n  other:\n  - {version: %s, urls: [y.tgz]}\n", v, v)
				} else {
					_, _ = fmt.Fprintf(w, `[{"tag_name":%q},{"tag_name":"other-%s"}]`, v, v)
				}
			}))
			sources, clock := remoteSources(t, Options{})
			ref := inManyPlaces(kind, server, 1)[0]
			other := ref
			other.Chart = *ref.Chart.DeepCopy()
			if kind == "helm" {
				other.Chart.Helm.Chart = "other"
			} else {
				other.Chart.GitHub.TagPrefix = "other-"
			}
			expectNewest(t, sources, ref, clock.Now(), "1.0.0")
			clock.Step(10 * time.Second)
			version.Store("1.1.0")
			asked := clock.Now()
			clock.Step(10 * time.Second)
			expectNewest(t, sources, other, clock.Now().Add(-sharedFor), "1.0.0") // its turn
			expectNewest(t, sources, other, asked, "1.1.0")
		})
	}
}
