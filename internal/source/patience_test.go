// SPDX-License-Identifier: Apache-2.0

package source

import (
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/source/flight"
	"github.com/cluster-chandler/chandler/internal/source/reference"
	"github.com/cluster-chandler/chandler/test/targz"
)

// silentServer answers nobody until it is told to, and counts who asks.
func silentServer(t *testing.T, then http.HandlerFunc) (url string, asked *atomic.Int32, answer func()) {
	t.Helper()
	asked = &atomic.Int32{}
	let := make(chan struct{})
	server := serving(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		select {
		case <-let:
			then(w, r)
		case <-r.Context().Done():
		}
	}))
	answer = sync.OnceFunc(func() { close(let) })
	t.Cleanup(answer)
	return server.URL, asked, answer
}

func at(url, file string, archive []byte) reference.Reference {
	ref := atAddress(url+"/"+file, artifact.Content{Archive: archive}.Digest())
	ref.Chart.HTTP.PlainHTTP = ptr.To(true)
	return ref
}

// Many want something of a host that is silent: only the first of them waits for it.
func TestSilentHostKeepsFewWaiting(t *testing.T) {
	url, _, _ := silentServer(t, func(http.ResponseWriter, *http.Request) {})
	sources := newSources(t, Options{AllowLoopback: true, Clock: clock.RealClock{}})
	begun := time.Now()
	for i := range 20 {
		ref := at(url, fmt.Sprintf("%d.tgz", i), nil)
		if _, err := sources.Fetch(t.Context(), ref, ref.GivenDigest()); asError(t, err).Reason != failure.ArtifactPending {
			t.Fatal(err)
		}
	}
	if took := time.Since(begun); took > 10*time.Second {
		t.Errorf("20 calls, one after the other, took %s", took)
	}
}

// Who had to go on without an answer is woken when it is there, once.
func TestAnswersWakeWhoWaits(t *testing.T) {
	chart := targz.Chart(t)
	url, asked, answer := silentServer(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(chart) })
	sources := newSources(t, Options{AllowLoopback: true, Clock: clock.RealClock{}})
	ref := at(url, "demo.tgz", chart)
	woken := make(chan string, 100)
	for _, who := range []string{"one", "two", "one", "two"} {
		ctx := flight.WithWaker(t.Context(), flight.Waiter{Kind: who}, func() { woken <- who })
		_, err := sources.Fetch(ctx, ref, ref.GivenDigest())
		if failed := asError(t, err); failed.Reason != failure.ArtifactPending || failed.RetryAfter < 30*time.Second {
			t.Errorf("got %+v: who is woken needn't come each second", failed)
		}
	}
	if len(woken) != 0 {
		t.Fatal("somebody was woken for nothing")
	}
	answer()
	if first, second := <-woken, <-woken; first == second {
		t.Errorf("%s was woken twice", first)
	}
	if _, err := sources.Fetch(t.Context(), ref, ref.GivenDigest()); err != nil {
		t.Errorf("after it is there: %v", err)
	}
	if len(woken) != 0 || asked.Load() != 1 {
		t.Errorf("%d more were woken; %d requests, want 1", len(woken), asked.Load())
	}
}

// How a source failed is told until it answers: also while it is asked again, and lets
// everybody wait.
func TestFailuresAreToldWhileASourceIsSilent(t *testing.T) {
	for _, kind := range []string{"resolve", "fetch"} {
		t.Run(kind, func(t *testing.T) {
			var broken atomic.Bool
			broken.Store(true)
			let := make(chan struct{})
			sources, clock, ref, _ := servedBy(t, func(w http.ResponseWriter, r *http.Request) {
				if broken.Load() {
					http.Error(w, "no", http.StatusInternalServerError)
					return
				}
				select {
				case <-let:
					_, _ = io.WriteString(w, "nothing of use")
				case <-r.Context().Done():
				}
			})
			if kind == "fetch" {
				ref = at(strings.TrimSuffix(ref.Chart.Helm.URL, "/"), "demo.tgz", nil)
			}
			try := func() *failure.Error {
				digest, err := sources.Resolve(t.Context(), ref)
				if err == nil {
					_, err = sources.Fetch(t.Context(), ref, digest)
				}
				return asError(t, err)
			}
			first := try()
			if first.Reason != failure.SourceUnavailable {
				t.Fatal(first)
			}
			broken.Store(false)
			clock.Step(time.Minute)
			for range 3 {
				told := make(chan *failure.Error)
				go func() { told <- try() }()
				for done := false; !done; {
					select {
					case again := <-told:
						if again.Error() != first.Error() || again.Reason != first.Reason || !again.Wait {
							t.Errorf("while it is asked again: %s: %v, want %v", again.Reason, again, first)
						}
						done = true
					default:
						if clock.HasWaiters() {
							clock.Step(flight.Patience)
						}
					}
				}
			}
			close(let)
			for deadline := time.Now().Add(10 * time.Second); try().Error() == first.Error(); runtime.Gosched() {
				if time.Now().After(deadline) {
					t.Fatal("it is told after there was another answer")
				}
			}
		})
	}
}
