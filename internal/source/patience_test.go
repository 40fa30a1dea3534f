// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"context"
	"io"
	"net/http"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/source"
	"github.com/cluster-chandler/chandler/internal/source/answers"
	"github.com/cluster-chandler/chandler/internal/source/reference"
	"github.com/cluster-chandler/chandler/test/targz"
)

// impatient fetches as a reconcile does, and lets time pass until that gives up.
func impatient(ctx context.Context, t *testing.T, sources *source.Sources, clock *clocktesting.FakeClock, ref reference.Reference) *failure.Error {
	t.Helper()
	told := make(chan error, 1)
	go func() {
		digest, err := sources.Resolve(ctx, ref)
		if err == nil {
			_, err = sources.Fetch(ctx, ref, digest)
		}
		told <- err
	}()
	for {
		select {
		case err := <-told:
			return asError(t, err)
		default:
			if clock.HasWaiters() {
				clock.Step(answers.Patience)
			}
			runtime.Gosched()
		}
	}
}

// Who had to go on without an answer is woken when it is there.
func TestAnswersWakeWhoWaits(t *testing.T) {
	chart := targz.Chart(t)
	server, asked, answer := silentServer(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(chart) })
	sources, clock := remoteSources(t, source.Options{})
	ref := atAddress(server.URL+"/demo.tgz", digestOf(chart))
	woken := make(chan string, 100)
	for _, who := range []string{"one", "two"} {
		failed := impatient(sources.Waiting(t.Context(), who, func() { woken <- who }), t, sources, clock, ref)
		if failed.Reason != failure.ArtifactPending || !failed.Wait || failed.RetryAfter < 30*time.Second {
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
	expectFetched(t, sources, ref)
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
			sources, clock, ref := servedBy(t, func(w http.ResponseWriter, r *http.Request) {
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
				ref = atAddress(ref.Chart.Helm.URL+"/demo.tgz", digestOf("x"))
			}
			first := get(t, sources, ref)
			expectRefused(t, first, failure.SourceUnavailable)
			broken.Store(false)
			clock.Step(time.Minute)
			woken := make(chan bool, 10)
			for range 3 {
				ctx := sources.Waiting(t.Context(), "me", func() { woken <- true })
				if again := impatient(ctx, t, sources, clock, ref); again.Error() != first.Error() || !again.Wait || !again.Again {
					t.Errorf("while it is asked again: %+v, want %v", again, first)
				}
			}
			close(let)
			<-woken
			if now := get(t, sources, ref); now == nil || now.Error() == first.Error() {
				t.Errorf("after there was another answer: %v", now)
			}
		})
	}
}
