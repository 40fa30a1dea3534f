// SPDX-License-Identifier: Apache-2.0

package deliver_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/fleet/secretwriter"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/drift"
	"github.com/cluster-chandler/chandler/internal/render/job"
	"github.com/cluster-chandler/chandler/test/long"
)

// through has the target's requests go through a transport.
func (e *env) through(transport func(next http.RoundTripper) roundTrip) deliver.Target {
	e.t.Helper()
	cfg := rest.CopyConfig(config)
	cfg.ContentType = "application/json" // so that answers can be changed
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		sent := transport(next)
		return roundTrip(func(r *http.Request) (*http.Response, error) {
			r.Header.Set("Accept", strings.ReplaceAll(r.Header.Get("Accept"), "vnd.kubernetes.protobuf", "json"))
			return sent(r)
		})
	})
	target := e.target
	byHTTP, err := rest.HTTPClientFor(cfg)
	e.Expect(err).NotTo(HaveOccurred())
	target.Secrets, err = secretwriter.New(cfg, byHTTP)
	e.Expect(err).NotTo(HaveOccurred())
	target.Client, err = client.New(cfg, client.Options{})
	e.Expect(err).NotTo(HaveOccurred())
	target.Dynamic, err = dynamic.NewForConfig(cfg)
	e.Expect(err).NotTo(HaveOccurred())
	return target
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// rewritten is an answer whose body was changed.
func rewritten(resp *http.Response, change func(object map[string]any)) (*http.Response, error) {
	defer resp.Body.Close()
	object := map[string]any{}
	if err := json.NewDecoder(resp.Body).Decode(&object); err != nil {
		return nil, err
	}
	change(object)
	data, err := json.Marshal(object)
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(data)), int64(len(data))
	resp.Header.Del("Content-Length")
	return resp, err
}

// TestPanicIsOneAddonsFailure panics in each goroutine that handles what a cluster
// answers. The add-on says so, another one is installed, and the first one is as well
// once nothing panics any more.
func TestPanicIsOneAddonsFailure(t *testing.T) {
	for name, isPanicking := range map[string]func(r *http.Request) bool{
		"in the call": func(r *http.Request) bool {
			return r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/secrets")
		},
		"while objects are applied": func(r *http.Request) bool { return r.Method == http.MethodPatch },
		"in a watch":                func(r *http.Request) bool { return r.URL.Query().Get("watch") != "" },
	} {
		t.Run(name, func(t *testing.T) {
			e, ns := beside(t)
			target := e.through(func(next http.RoundTripper) roundTrip {
				return func(r *http.Request) (*http.Response, error) {
					if isPanicking(r) {
						panic("as if an answer led to it")
					}
					return next.RoundTrip(r)
				}
			})
			want := gated(e, ns)
			e.ctx = logr.NewContext(e.ctx, logr.Discard())
			o := e.drive(func() (deliver.Outcome, error) { return e.d.Ensure(e.ctx, target, want) },
				func(o deliver.Outcome) bool { return o.Phase == addonsv1.AddonFailed })
			e.Expect(o.Reason).To(Equal(deliver.ReasonInternalError))
			e.Expect(o.RetryAfter).To(BeNumerically(">", 0))

			other := e.wantNamed("other", ns, chart{version: "1", manifest: configMap("b", "x")})
			e.install(other)
			e.clock.step(11 * time.Second)
			e.ensure(want)
			open(e, ns)
			e.install(want)
		})
	}
}

// TestPanicBesideAnotherRequest panics in the request that is sent beside another one: for the record that is expected, and for the dry
// run of an object that a watch has shown to differ.
func TestPanicBesideAnotherRequest(t *testing.T) {
	e, ns := beside(t)
	want := e.want(ns, chart{version: "1", manifest: labelled})
	e.install(want)
	newest := e.records(ns)[want.Release].SecretName
	e.ctx = logr.NewContext(e.ctx, logr.Discard())
	panicking := func(is func(*http.Request) bool) deliver.Target {
		return e.through(func(next http.RoundTripper) roundTrip {
			return func(r *http.Request) (*http.Response, error) {
				if is(r) {
					panic("as if an answer led to it")
				}
				return next.RoundTrip(r)
			}
		})
	}
	next := e.want(ns, chart{version: "2", manifest: labelled})
	next.Newest = newest
	o, err := e.d.Ensure(e.ctx, panicking(func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/"+newest) }), next)
	e.Expect(err).NotTo(HaveOccurred())
	e.Expect(o.Reason).To(Equal(deliver.ReasonInternalError))

	e.edit("somebody", e.get("v1", "ConfigMap", ns, "settings"), `{"data":{"key":"other"}}`)
	of := deliver.Repair{Release: want.Release, Seen: func(deliver.ObjectKey) (drift.Fields, bool) { return 1, true }}
	o, _, err = e.d.Repair(e.ctx, panicking(func(r *http.Request) bool { return r.URL.Query().Has("dryRun") }), of)
	e.Expect(err).NotTo(HaveOccurred())
	e.Expect(o.Reason).To(Equal(deliver.ReasonInternalError))
}

// TestAnswerWithoutUIDIsRefused gets answers to the write of the record that no API
// server gives.
func TestAnswerWithoutUIDIsRefused(t *testing.T) {
	for name, change := range map[string]func(metadata map[string]any){
		"no uid":       func(metadata map[string]any) { delete(metadata, "uid") },
		"another name": func(metadata map[string]any) { metadata["name"] = "other" },
		"no labels":    func(metadata map[string]any) { delete(metadata, "labels") },
	} {
		t.Run(name, func(t *testing.T) {
			e, ns := beside(t)
			target := e.through(func(next http.RoundTripper) roundTrip {
				return func(r *http.Request) (*http.Response, error) {
					resp, err := next.RoundTrip(r)
					if err != nil || r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/secrets") {
						return resp, err
					}
					return rewritten(resp, func(object map[string]any) { change(object["metadata"].(map[string]any)) })
				}
			})
			want := e.want(ns, chart{version: "1", manifest: configMap("a", "x")})
			o, err := e.d.Ensure(e.ctx, target, want)
			e.Expect(err).NotTo(HaveOccurred())
			e.Expect(o.Phase).To(Equal(addonsv1.AddonFailed))
			e.Expect(o.Reason).To(Equal(deliver.ReasonAnswerInvalid))
			e.Expect(o.Message).To(ContainSubstring(ns + "/sh.helm.release.v1.demo.v1"))
			e.Expect(e.get("v1", "ConfigMap", ns, "a")).To(BeNil(), "nothing is applied that no record is known of")
			e.clock.step(11 * time.Second)
			e.install(want)
		})
	}
}

// liar makes something else of an API server's answers. What it makes depends on its seed,
// on the request, and on how often that came. What comes of it still varies: Jobs take their time.
type liar struct {
	seed uint64

	mu    sync.Mutex
	times map[string]uint64
}

func (l *liar) random(r *http.Request) *rand.Rand {
	request := r.Method + " " + r.URL.Path
	l.mu.Lock()
	l.times[request]++
	n := l.times[request]
	l.mu.Unlock()
	h := fnv.New64a()
	_, _ = io.WriteString(h, request)
	return rand.New(rand.NewPCG(l.seed, h.Sum64()+n))
}

func (l *liar) transport(next http.RoundTripper) roundTrip {
	return func(r *http.Request) (*http.Response, error) {
		resp, err := next.RoundTrip(r)
		if err != nil {
			return nil, err
		}
		rnd, body := l.random(r), resp.Body
		resp.ContentLength = -1
		resp.Header.Del("Content-Length")
		if r.URL.Query().Get("watch") != "" {
			reader, writer := io.Pipe()
			resp.Body = lines{reader, body}
			go func() {
				events := bufio.NewReader(body)
				for {
					line, err := events.ReadBytes('\n')
					if err == nil {
						_, err = writer.Write(append(lie(rnd, line), '\n'))
					}
					if err != nil {
						_ = writer.CloseWithError(err)
						return
					}
				}
			}()
			return resp, nil
		}
		data, err := io.ReadAll(body)
		_ = body.Close()
		resp.Body = io.NopCloser(bytes.NewReader(lie(rnd, data)))
		return resp, err
	}
}

// lines is a body that is changed line by line.
type lines struct {
	*io.PipeReader
	from io.Closer
}

func (l lines) Close() error {
	_ = l.PipeReader.Close()
	return l.from.Close()
}

// lie changes an answer: often in no place, mostly in one or a few.
func lie(rnd *rand.Rand, data []byte) []byte {
	switch rnd.IntN(200) {
	case 0:
		return data[:rnd.IntN(len(data)+1)]
	case 1:
		return []byte("<html>503</html>")
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var answer any
	if decoder.Decode(&answer) != nil {
		return data
	}
	changed, err := json.Marshal(mutated(rnd, answer, []float64{0, 0, 0, 0, 0.002, 0.01, 0.05}[rnd.IntN(7)]))
	if err != nil {
		return data
	}
	return changed
}

// mutated is a value of JSON, of which each part is with this probability gone or another.
func mutated(rnd *rand.Rand, v any, p float64) any {
	if rnd.Float64() < p {
		others := []any{nil, "", "x", "../..", strings.Repeat("y", 5000), 0, -1, 1.5, 1 << 62, true, map[string]any{}, []any{}, []any{nil}, map[string]any{"": nil}}
		return others[rnd.IntN(len(others))]
	}
	switch v := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if rnd.Float64() < p {
				delete(v, key)
				continue
			}
			v[key] = mutated(rnd, v[key], p)
		}
	case []any:
		for i := range v {
			v[i] = mutated(rnd, v[i], p)
		}
	}
	return v
}

// TestAnswersThatLie installs, upgrades, repairs and removes add-ons on a cluster whose
// answers are changed at random. None of them leads to a panic, or leaves a goroutine, and
// another cluster is served meanwhile.
func TestAnswersThatLie(t *testing.T) {
	long.Test(t)
	const seeds, passes = 24, 24
	e := newEnv(t)
	good := e.namespace()
	e.install(e.want(good, chart{version: "0", manifest: configMap("a", "x")})) // opens the connections
	before := runtime.NumGoroutine()
	e.ctx = logr.NewContext(e.ctx, funcr.New(func(_, args string) { t.Log(args) }, funcr.Options{}))

	var workers sync.WaitGroup
	seen := make([]map[string]int, seeds)
	for first := range 4 {
		workers.Go(func() {
			for seed := first; seed < seeds; seed += 4 {
				seen[seed] = e.believe(uint64(seed), passes)
			}
		})
	}
	for i := range 5 {
		e.install(e.want(good, chart{version: fmt.Sprint(i + 1), manifest: configMap("a", fmt.Sprint(i))}))
	}
	workers.Wait()
	reasons := map[string]int{}
	for seed, counts := range seen {
		e.Expect(counts).NotTo(HaveKey(deliver.ReasonInternalError), "seed %d", seed)
		for reason, n := range counts {
			reasons[reason] += n
		}
	}
	e.Expect(reasons).To(And(HaveKey(deliver.ReasonReady), HaveKey("error")), "it gets far, and not always")
	e.Expect(e.remove(deliver.Release{Namespace: good, Name: "demo"}).Gone).To(BeTrue())
	e.Eventually(runtime.NumGoroutine).WithTimeout(20*time.Second).Should(BeNumerically("<=", before+10), "watches end with their connection")
}

// believe works on an add-on of a cluster that lies, and counts what came of it.
func (e *env) believe(seed uint64, passes int) map[string]int {
	ns := e.namespace()
	l := &liar{seed: seed, times: map[string]uint64{}}
	target := e.through(l.transport)
	target.Name = fmt.Sprintf("%s-%d", e.t.Name(), seed)
	ctx, cancel := context.WithCancel(e.ctx)
	target.Context = ctx
	defer func() {
		cancel()
		e.d.Forget(target.Name)
	}()
	group := ns + ".example.com"
	hooks := []job.Hook{
		hook("pre", 0, strings.Replace(jobText("pre", false), "  backoffLimit: 0\n", "  backoffLimit: 0\n"+collects, 1), []string{"pre-install", "pre-upgrade", "pre-delete"}, "before-hook-creation", "hook-succeeded"),
	}
	if seed%2 == 0 {
		hooks = nil // so that it gets further
	}
	want := func(version string) deliver.Desired {
		d := e.want(ns, chart{version: version, crds: crd("x" + group), hooks: hooks,
			manifest: crd(group) + widget(group, "w"+version) + configMap("a", version) + deployment("app") + plainJob(collects, "")})
		d.Adoption, d.Sensitive = "Adopt", []string{"s3cret"}
		return d
	}
	counts := map[string]int{}
	for pass := range passes {
		limited, done := context.WithTimeout(ctx, 10*time.Second)
		var o deliver.Outcome
		var err error
		switch {
		case pass%8 == 7:
			o, _, err = e.d.Repair(limited, target, deliver.Repair{Release: want("").Release})
		case pass > passes*3/4:
			o, err = e.d.Remove(limited, target, want("").Release)
		default:
			o, err = e.d.Ensure(limited, target, want(fmt.Sprint(pass*3/passes)))
		}
		done()
		if err != nil {
			counts["error"]++
		} else {
			counts[o.Reason]++
		}
		e.clock.step(15 * time.Second)
		select { // Jobs and Deployments need a moment
		case <-e.wakeup:
		case <-time.After(100 * time.Millisecond):
		}
	}
	return counts
}
