// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/retry"
	"github.com/cluster-chandler/chandler/internal/source"
	"github.com/cluster-chandler/chandler/internal/source/reference"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/registry"
	"github.com/cluster-chandler/chandler/test/targz"
)

// rejected is a registry with a version that is refused.
type rejected struct {
	*registry.Registry
	ref     reference.Reference
	sources *source.Sources
	clock   *clocktesting.FakeClock
}

func startRejected(t *testing.T) *rejected {
	t.Helper()
	server := registry.Start(t, registry.Options{PlainHTTP: true})
	sources, clock := remoteSources(t, source.Options{})
	w := &rejected{server, plainly(inRegistry(server.URL("charts/demo"), "1.0.0")), sources, clock}
	w.publish(t, hostileVersion(t))
	return w
}

// publish puts another archive in the place of the version.
func (w *rejected) publish(t *testing.T, archive []byte) {
	t.Helper()
	w.Push(t, archive, "charts/demo", "1.0.0")
}

// refuse says that content can't be used, and returns when its source is asked again; 0 for never.
func refuse(t *testing.T, sources *source.Sources, ref reference.Reference, digest string) time.Duration {
	t.Helper()
	err := failure.New(failure.ArtifactRefused, "it is of no use")
	if got := sources.Refused(t.Context(), ref, digest, err); !errors.Is(got, err) {
		t.Errorf("it became %v", got)
	}
	return err.RetryAfter
}

// forAnHour does it again whenever it says, and returns how often.
func (w *rejected) forAnHour(t *testing.T, try func() time.Duration) (tries int) {
	t.Helper()
	for waited := time.Duration(0); waited < time.Hour; tries++ {
		again := try()
		if again <= 0 || again > retry.Refused.Longest*5/4 {
			t.Fatalf("try %d: again after %s", tries, again)
		}
		w.clock.Step(again)
		waited += again
	}
	return tries
}

// An exact version that was rejected is asked for again, seldom, and used when it was
// published again.
func TestRejectedVersionIsAskedForAgain(t *testing.T) {
	w := startRejected(t)
	w.Requests(t)
	w.forAnHour(t, func() time.Duration {
		err := get(t, w.sources, w.ref)
		expectRefused(t, err, failure.ArtifactRefused)
		expectRefused(t, get(t, w.sources, w.ref), failure.ArtifactRefused)
		return asError(t, err).RetryAfter
	})
	if asked := w.Requests(t); len(asked) > 40 {
		t.Errorf("in an hour it was asked %d times: %q", len(asked), asked)
	}
	w.publish(t, chartVersion(t, "1.0.0"))
	w.clock.Step(2 * retry.Refused.Longest)
	expectFetched(t, w.sources, w.ref)
	w.Requests(t)
	w.clock.Step(24 * time.Hour)
	expectFetched(t, w.sources, w.ref)
	if asked := w.Requests(t); len(asked) > 0 {
		t.Errorf("what is good is asked for again: %q", asked)
	}
}

// Somebody who fixed it needn't wait.
func TestRejectedVersionIsReconsidered(t *testing.T) {
	w := startRejected(t)
	for range 10 {
		w.clock.Step(asError(t, get(t, w.sources, w.ref)).RetryAfter)
	}
	woken := 0
	digest := expectResolved(t, w.sources, w.ref)
	_, err := w.sources.Fetch(w.sources.Waiting(t.Context(), "me", func() { woken++ }), w.ref, digest)
	expectRefused(t, err, failure.ArtifactRefused)
	w.publish(t, chartVersion(t, "1.0.0"))
	expectRefused(t, get(t, w.sources, w.ref), failure.ArtifactRefused)
	w.sources.Reconsider(t.Context(), of("2.0.0", w.ref))
	must.Equal(t, 0, woken, "it is another one")
	w.sources.Reconsider(t.Context(), w.ref)
	must.Equal(t, 1, woken, "times that who was told is woken")
	expectFetched(t, w.sources, w.ref)
}

// Whoever was told of a rejection is woken once there is something else at the same place.
func TestRejectedVersionThatWasReplacedWakes(t *testing.T) {
	w := startRejected(t)
	woken := map[string]int{}
	digest := expectResolved(t, w.sources, w.ref)
	for _, who := range []string{"a", "b", "a"} {
		_, err := w.sources.Fetch(w.sources.Waiting(t.Context(), who, func() { woken[who]++ }), w.ref, digest)
		expectRefused(t, err, failure.ArtifactRefused)
	}
	w.publish(t, chartVersion(t, "1.0.0"))
	expectResolved(t, w.sources, w.ref)
	if len(woken) > 0 {
		t.Errorf("woken before the source is asked again: %v", woken)
	}
	w.clock.Step(2 * retry.Refused.Longest)
	for range 2 {
		expectFetched(t, w.sources, w.ref)
	}
	if woken["a"] != 1 || woken["b"] != 1 {
		t.Errorf("woken: %v", woken)
	}
}

// What a reference names by its digest, and is rejected, stays so.
func TestRejectedDigestIsNotAskedForAgain(t *testing.T) {
	w := startRejected(t)
	w.ref.Chart.OCI.Digest = w.Push(t, hostileVersion(t), "charts/demo", "1.0.0")
	err := get(t, w.sources, w.ref)
	expectRefused(t, err, failure.ArtifactRefused)
	digest := expectResolved(t, w.sources, w.ref)
	must.Equal(t, 0, refuse(t, w.sources, w.ref, digest), "it is rejected for")
	must.Equal(t, digest, w.sources.Current(t.Context(), w.ref, digest), "it is now")
}

// Who has the digest from elsewhere doesn't come back all the time, nor is the source
// asked more than by others.
func TestRecordedDigestIsRejected(t *testing.T) {
	w := startRejected(t)
	digest := expectResolved(t, w.sources, w.ref)
	for name, try := range map[string]func(*source.Sources) time.Duration{
		"content": func(sources *source.Sources) time.Duration {
			_, err := sources.Fetch(t.Context(), w.ref, digest)
			return asError(t, err).RetryAfter
		},
		"what is in it": func(sources *source.Sources) time.Duration { return refuse(t, sources, w.ref, digest) },
	} {
		t.Run(name, func(t *testing.T) {
			restarted := newSources(t, source.Options{AllowLoopback: true, Clock: w.clock})
			w.Requests(t)
			tries := w.forAnHour(t, func() time.Duration { return try(restarted) })
			if asked := w.Requests(t); tries > 40 || len(asked) > 40 {
				t.Errorf("in an hour it was tried %d times, and the source was asked %d times", tries, len(asked))
			}
		})
	}
}

// The recorded digest gives way to what was published in the place of what was rejected,
// and to nothing else.
func TestRecordedDigestGivesWay(t *testing.T) {
	w := startRejected(t)
	recorded := expectResolved(t, w.sources, w.ref)
	w.publish(t, chartVersion(t, "1.0.0"))
	w.clock.Step(time.Hour)
	must.Equal(t, recorded, w.sources.Current(t.Context(), w.ref, recorded), "was not rejected, but is now")
	w.publish(t, hostileVersion(t))
	expectRefused(t, get(t, w.sources, w.ref), failure.ArtifactRefused)
	w.publish(t, chartVersion(t, "1.0.0"))
	w.sources.Reconsider(t.Context(), w.ref)
	again := w.sources.Current(t.Context(), w.ref, recorded)
	if again == recorded {
		t.Error("what was published again isn't used")
	}
	if _, err := w.sources.Fetch(t.Context(), w.ref, again); err != nil {
		t.Error(err)
	}

	other := of("2.0.0", w.ref) // nobody published it
	w.Requests(t)
	w.forAnHour(t, func() time.Duration {
		again := refuse(t, w.sources, other, recorded)
		must.Equal(t, recorded, w.sources.Current(t.Context(), other, recorded), "the source can't be read, and it is now")
		return again
	})
	if asked := w.Requests(t); len(asked) > 130 {
		t.Errorf("in an hour it was asked %d times", len(asked))
	}
}

// A source that is down, of which a version was rejected, is asked by one for all; what
// it was resolved to is still known.
func TestRejectedVersionWhoseSourceIsDown(t *testing.T) {
	var down atomic.Bool
	var asked atomic.Int32
	hostile := hostileVersion(t)
	sources, clock, ref := servedBy(t, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		switch {
		case down.Load():
			http.Error(w, "no", http.StatusInternalServerError)
		case strings.HasSuffix(r.URL.Path, "index.yaml"):
			_, _ = fmt.Fprint(w, oneVersion("demo.tgz"))
		default:
			_, _ = w.Write(hostile)
		}
	})
	expectRefused(t, get(t, sources, ref), failure.ArtifactRefused)
	digest := expectResolved(t, sources, ref)
	down.Store(true)
	for range 30 {
		clock.Step(time.Minute)
		asked.Store(0)
		for range 100 {
			if still := expectResolved(t, sources, ref); still != digest {
				t.Fatalf("it is %s now", still)
			}
			expectRefused(t, get(t, sources, ref), failure.ArtifactRefused)
		}
		if n := asked.Load(); n > 2 {
			t.Fatalf("100 callers at one moment made %d requests", n)
		}
	}
}

// A source that gives something else each time, and each time what is rejected, is asked
// no more often than one that stays the same.
func TestRejectedVersionChangesAllTheTime(t *testing.T) {
	var downloads atomic.Int32
	sources, clock, ref := servedBy(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "index.yaml") {
			_, _ = fmt.Fprint(w, oneVersion("demo.tgz"))
			return
		}
		_, _ = w.Write(targz.Chart(t, targz.Entry{Name: "demo/n", Data: fmt.Sprint(downloads.Add(1))}, targz.Entry{Name: "demo/x", Link: "../../../etc/passwd", Kind: '2'}))
	})
	var woken atomic.Int32
	for waited := time.Duration(0); waited < time.Hour; {
		ctx := sources.Waiting(t.Context(), "me", func() { woken.Add(1) })
		digest, err := sources.Resolve(ctx, ref)
		if err == nil {
			_, err = sources.Fetch(ctx, ref, digest)
		}
		again := asError(t, err).RetryAfter
		clock.Step(again)
		waited += again
	}
	if n := downloads.Load(); n > 60 || woken.Load() > 60 {
		t.Errorf("in an hour %d downloads, and %d times woken", n, woken.Load())
	}
}

// Who rejects a version for its signature doesn't move it for those who want none.
func TestRejectedByVerifyAlone(t *testing.T) {
	w := startRejected(t)
	w.publish(t, chartVersion(t, "1.0.0"))
	taken := expectFetched(t, w.sources, w.ref).Digest
	other := of("1.0.0", w.ref)
	other.Namespace, other.Chart.Verify = "team-b", byKeys("")
	w.publish(t, targz.Of(t, targz.Entry{Name: "demo/Chart.yaml", Data: "apiVersion: v2\nname: demo\nversion: 1.0.0\ndescription: moved\n"}))
	for range 5 {
		w.clock.Step(refuse(t, w.sources, other, taken))
		if now := expectResolved(t, w.sources, w.ref); now != taken {
			t.Fatalf("%s is %s now", taken, now)
		}
	}
	if now := expectResolved(t, w.sources, other); now == taken {
		t.Error("who rejects it doesn't get what was published again")
	}
	if now := w.sources.Current(t.Context(), other, taken); now == taken {
		t.Error("who rejects what another process took is given it again")
	}
	must.Equal(t, taken, w.sources.Current(t.Context(), w.ref, taken), "who rejects nothing gets")
	w.Requests(t)
	w.clock.Step(time.Hour)
	expectFetched(t, w.sources, w.ref)
	if asked := w.Requests(t); len(asked) > 0 {
		t.Errorf("what is good is asked for again: %q", asked)
	}
}
