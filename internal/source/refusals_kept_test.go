// SPDX-License-Identifier: Apache-2.0

package source

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/source/flight"
	"github.com/cluster-chandler/chandler/test/targz"
)

// oneVersion is the index of a repository with the chart demo in one version.
const oneVersion = "apiVersion: v1\nentries:\n  demo:\n  - name: demo\n    version: 1.0.0\n    urls: [demo.tgz]\n"

// Who has the digest from elsewhere doesn't come back all the time, nor is the source
// asked more than by others.
func TestKeptDigestIsRefused(t *testing.T) {
	server, ref, step, sources, _ := refusedVersion(t)
	digest := expectResolved(t, sources, ref)
	for name, try := range map[string]func() time.Duration{
		"content": func() time.Duration {
			_, err := sources.Fetch(t.Context(), ref, digest)
			return asError(t, err).RetryAfter
		},
		"what is in it": func() time.Duration { return sources.Refuse(t.Context(), ref, digest) },
	} {
		t.Run(name, func(t *testing.T) {
			server.Requests(t)
			tries := 0
			for waited := time.Duration(0); waited < time.Hour; tries++ {
				again := try()
				if again <= 0 {
					t.Fatalf("try %d: again after %s", tries, again)
				}
				step(again)
				waited += again
			}
			if asked := server.Requests(t); tries > 40 || len(asked) > 40 {
				t.Errorf("in an hour it was tried %d times, and the source was asked %d times", tries, len(asked))
			}
		})
	}
}

// The kept digest gives way to what was published in the place of what was refused, and
// to nothing else.
func TestKeptDigestGivesWay(t *testing.T) {
	server, ref, step, sources, try := refusedVersion(t)
	kept := expectResolved(t, sources, ref)
	server.Push(t, chartVersion(t, "1.0.0"), "charts/demo", "1.0.0")
	step(time.Hour)
	if now := sources.Kept(t.Context(), ref, kept); now != kept {
		t.Errorf("%s was not refused, but is %s now", kept, now)
	}
	server.Push(t, hostileVersion(t), "charts/demo", "1.0.0")
	_ = try()
	server.Push(t, chartVersion(t, "1.0.0"), "charts/demo", "1.0.0")
	sources.Reconsider(ref)
	anew := sources.Kept(t.Context(), ref, kept)
	if anew == kept {
		t.Error("what was published anew isn't used")
	}
	if _, err := sources.Fetch(t.Context(), ref, anew); err != nil {
		t.Error(err)
	}

	other := ref
	other.Chart.Version = "2.0.0" // nobody published it
	sources.Refuse(t.Context(), other, kept)
	server.Requests(t)
	for waited := time.Duration(0); waited < time.Hour; {
		if now := sources.Kept(t.Context(), other, kept); now != kept {
			t.Errorf("the source can't be read, and it is %q now", now)
		}
		again := sources.Refuse(t.Context(), other, kept)
		if again <= 0 {
			t.Fatalf("again after %s", again)
		}
		step(again)
		waited += again
	}
	if asked := server.Requests(t); len(asked) > 130 {
		t.Errorf("in an hour it was asked %d times", len(asked))
	}
}

// A source that is down, of which a version was refused, is asked by one for all; what
// it was resolved to is still known.
func TestRefusedVersionWhoseSourceIsDown(t *testing.T) {
	var down atomic.Bool
	var asked atomic.Int32
	hostile := hostileVersion(t)
	sources, clock, ref, _ := servedBy(t, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		switch {
		case down.Load():
			http.Error(w, "no", http.StatusInternalServerError)
		case strings.HasSuffix(r.URL.Path, "index.yaml"):
			_, _ = fmt.Fprint(w, oneVersion)
		default:
			_, _ = w.Write(hostile)
		}
	})
	digest := expectResolved(t, sources, ref)
	_, err := sources.Fetch(t.Context(), ref, digest)
	expectFailed(t, err, failure.ArtifactRefused)
	down.Store(true)
	for waited := time.Duration(0); waited < time.Hour; waited += time.Minute {
		clock.Step(time.Minute)
		asked.Store(0)
		for range 100 {
			if still := expectResolved(t, sources, ref); still != digest {
				t.Fatalf("it is %s now", still)
			}
			_, err := sources.Fetch(t.Context(), ref, digest)
			expectFailed(t, err, failure.ArtifactRefused)
		}
		if n := asked.Load(); n > 2 {
			t.Fatalf("100 callers at one moment made %d requests", n)
		}
	}
}

func expectFailed(t *testing.T, err error, reason string) {
	t.Helper()
	if failed := asError(t, err); failed == nil || failed.Reason != reason {
		t.Fatalf("%v, want %s", err, reason)
	}
}

// A source that gives something else each time, and each time what is refused, is asked
// no more often than one that stays the same.
func TestRefusedVersionChangesAllTheTime(t *testing.T) {
	var downloads atomic.Int32
	sources, clock, ref, _ := servedBy(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "index.yaml") {
			_, _ = fmt.Fprint(w, oneVersion)
			return
		}
		_, _ = w.Write(targz.Of(t, targz.Entry{Name: "demo/Chart.yaml", Data: "apiVersion: v2\nname: demo\nversion: 1.0.0\n"},
			targz.Entry{Name: "demo/n", Data: fmt.Sprint(downloads.Add(1))}, targz.Entry{Name: "demo/x", Link: "../../../etc/passwd", Kind: '2'}))
	})
	woken := 0
	ctx := flight.WithWaker(t.Context(), flight.Waiter{Kind: "me"}, func() { woken++ })
	for waited := time.Duration(0); waited < time.Hour; {
		digest, err := sources.Resolve(ctx, ref)
		if err == nil {
			_, err = sources.Fetch(ctx, ref, digest)
		}
		again := asError(t, err).RetryAfter
		clock.Step(again)
		waited += again
	}
	if n := downloads.Load(); n > 40 || woken > 40 {
		t.Errorf("in an hour %d downloads, and %d times woken", n, woken)
	}
}

// Who refuses a version for its signature doesn't move it for those who want none.
func TestRefusedByVerifyAlone(t *testing.T) {
	server, ref, step, sources, _ := refusedVersion(t)
	server.Push(t, chartVersion(t, "1.0.0"), "charts/demo", "1.0.0")
	expectFetched(t, sources, ref)
	taken := expectResolved(t, sources, ref)
	other := ref
	other.Namespace = "team-b"
	other.Chart.Verify = &addonsv1.Verification{Cosign: &addonsv1.CosignVerification{PublicKeys: []addonsv1.TrustReference{{Kind: "ConfigMap", Name: "keys"}}}}
	server.Push(t, targz.Of(t, targz.Entry{Name: "demo/Chart.yaml", Data: "apiVersion: v2\nname: demo\nversion: 1.0.0\ndescription: moved\n"}), "charts/demo", "1.0.0")
	for range 5 {
		step(sources.Refuse(t.Context(), other, taken))
		if now := expectResolved(t, sources, ref); now != taken {
			t.Fatalf("%s is %s now", taken, now)
		}
	}
	if now := sources.Kept(t.Context(), other, taken); now == taken {
		t.Error("who refuses it doesn't get what was published anew")
	}
	server.Requests(t)
	step(time.Hour)
	expectFetched(t, sources, ref)
	if asked := server.Requests(t); len(asked) > 0 {
		t.Errorf("what is good is asked for again: %q", asked)
	}
}
