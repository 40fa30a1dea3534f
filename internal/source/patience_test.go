// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
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
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"github.com/cluster-chandler/chandler/internal/source/artifact"
	"github.com/cluster-chandler/chandler/internal/source/failure"
	"github.com/cluster-chandler/chandler/test/targz"
)

// TestSharedPatience has one reconcile wait for several flights that don't land.
func TestSharedPatience(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Now())
	flights := newFlights(clock)
	shared := WithSharedPatience(t.Context())
	expectPending := func(host string, after time.Duration) {
		t.Helper()
		done := make(chan error)
		go func() {
			_, err := board(shared, flights, route{name: "slow from " + host, host: host}, func(context.Context) (string, error) {
				<-t.Context().Done()
				return "", nil
			})
			done <- err
		}()
		for !clock.HasWaiters() {
			runtime.Gosched()
		}
		clock.Step(after - 1)
		select {
		case err := <-done:
			t.Fatalf("it gave up before %s: %v", after, err)
		default:
		}
		clock.Step(1)
		if err := <-done; asError(t, err).Reason != failure.ArtifactPending {
			t.Errorf("after %s: %v", after, err)
		}
	}
	expectPending("one", patience)
	expectPending("two", leastPatience)
	expectPending("two", leastPatience)
	shared = WithSharedPatience(t.Context())
	expectPending("one", leastPatience) // another reconcile, and a host that is known to be slow
	expectPending("three", patience)

	quick, err := board(shared, flights, route{name: "quick", host: "one"}, func(context.Context) (string, error) { return "here", nil })
	if err != nil || quick != "here" {
		t.Errorf("%v, %v", quick, err)
	}
}

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

func at(url, file string, archive []byte) Reference {
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
		if _, err := sources.Fetch(t.Context(), ref, ref.given()); asError(t, err).Reason != failure.ArtifactPending {
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
		ctx := WithWaker(t.Context(), Waiter{Kind: who}, func() { woken <- who })
		_, err := sources.Fetch(ctx, ref, ref.given())
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
	if _, err := sources.Fetch(t.Context(), ref, ref.given()); err != nil {
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
							clock.Step(patience)
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

// A flight that fails although nobody could wait for it is told to those it wakes: they
// don't begin it anew.
func TestFailuresThatWakeAreTold(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Now())
	flights := newFlights(clock)
	let, begun, woken := make(chan struct{}), atomic.Int32{}, make(chan struct{}, 10)
	fly := func() error {
		_, err := board(WithWaker(t.Context(), Waiter{Kind: "me"}, func() { woken <- struct{}{} }), flights, route{name: "x"}, func(context.Context) (int, error) {
			begun.Add(1)
			<-let
			return 0, failure.Changed()
		})
		return err
	}
	done := make(chan error)
	go func() { done <- fly() }()
	for !clock.HasWaiters() {
		runtime.Gosched()
	}
	clock.Step(patience)
	if err := <-done; asError(t, err).Reason != failure.ArtifactPending {
		t.Fatal(err)
	}
	close(let)
	<-woken
	if err := fly(); asError(t, err).Reason != failure.ArtifactChanged || begun.Load() != 1 {
		t.Errorf("%v after %d flights", err, begun.Load())
	}
	clock.Step(2 * firstRetry)
	if err := fly(); asError(t, err).Reason != failure.ArtifactChanged || begun.Load() != 2 {
		t.Errorf("%v after %d flights", err, begun.Load())
	}
}

// A flight goes on when the caller leaves whose time is over, and wakes him as well.
func TestFlightsOutliveCallers(t *testing.T) {
	flights := newFlights(clock.RealClock{})
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	let, woken := make(chan struct{}), make(chan struct{})
	_, err := board(WithWaker(ctx, Waiter{Kind: "me"}, func() { close(woken) }), flights, route{name: "x"}, func(ctx context.Context) (int, error) {
		<-let
		return 1, ctx.Err()
	})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	close(let)
	<-woken
}

// A failure is told while it is asked again, but not for ever: what was wrong once says
// nothing of a source that answers now.
func TestOldFailuresAreForgotten(t *testing.T) {
	for name, tc := range map[string]struct {
		failed *failure.Error
		later  time.Duration
		want   string
	}{
		"soon":                       {failure.Changed(), maxRetry, failure.ArtifactChanged},
		"after a month":              {failure.Changed(), 30 * 24 * time.Hour, failure.ArtifactPending},
		"when the host asked for it": {after(time.Hour, failure.Changed()), time.Hour, failure.ArtifactChanged},
	} {
		t.Run(name, func(t *testing.T) {
			clock := clocktesting.NewFakeClock(time.Now())
			flights := newFlights(clock)
			to := route{name: "x", host: "h"}
			fails := func(context.Context) (int, error) { return 0, tc.failed }
			if _, err := board(t.Context(), flights, to, fails); asError(t, err).Reason != failure.ArtifactChanged {
				t.Fatal(err)
			}
			clock.Step(tc.later)
			let := make(chan struct{})
			defer close(let)
			told := make(chan error)
			go func() {
				_, err := board(t.Context(), flights, to, func(context.Context) (int, error) { <-let; return 1, nil })
				told <- err
			}()
			for !clock.HasWaiters() {
				runtime.Gosched()
			}
			clock.Step(patience)
			if err := <-told; asError(t, err).Reason != tc.want {
				t.Errorf("while it is asked again: %v, want %s", err, tc.want)
			}
		})
	}
}

func after(retry time.Duration, failed *failure.Error) *failure.Error {
	failed.RetryAfter = retry
	return failed
}

// Who comes with other credentials while a request is under way isn't told that those
// before don't do: neither when it has failed, nor while it goes on.
func TestOtherCredentialsAreTried(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Now())
	flights := newFlights(clock)
	begun, let := make(chan string, 5), make(chan struct{})
	fly := func(ctx context.Context, credentials string) error {
		_, err := board(ctx, flights, route{name: "x", host: "h", credentials: credentials}, func(context.Context) (int, error) {
			begun <- credentials
			if credentials == "new" {
				return 1, nil
			}
			<-let
			return 0, failure.New(failure.SourceUnauthorized, "old credentials don't do")
		})
		return err
	}
	told := make(chan error)
	try := func(credentials string) {
		go func() { told <- fly(t.Context(), credentials) }()
		for !clock.HasWaiters() {
			runtime.Gosched()
		}
	}
	go func() { let <- struct{}{} }()
	if err := fly(t.Context(), "old"); asError(t, err).Reason != failure.SourceUnauthorized {
		t.Fatal(err)
	}
	<-begun
	clock.Step(patience) // nobody waits any more
	leaves, leave := context.WithCancel(t.Context())
	leave()
	_ = fly(leaves, "old") // it goes on without him
	<-begun
	clock.Step(leastPatience)

	try("new")
	clock.Step(patience)
	if err := <-told; asError(t, err).Reason != failure.ArtifactPending {
		t.Errorf("while the old ones are tried: %v", err)
	}
	try("new")
	close(let)
	if err := <-told; err != nil {
		t.Errorf("with new credentials: %v", err)
	} else if who := <-begun; who != "new" || len(begun) != 0 {
		t.Errorf("%s asked, and %d more", who, len(begun))
	}
}
