// SPDX-License-Identifier: Apache-2.0

package source

import (
	"testing"
	"time"

	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/source/flight"
	"github.com/cluster-chandler/chandler/internal/source/reference"
	"github.com/cluster-chandler/chandler/test/registry"
	"github.com/cluster-chandler/chandler/test/targz"
)

// hostileVersion is a chart that is refused.
func hostileVersion(t testing.TB) []byte {
	return targz.Of(t, targz.Entry{Name: "demo/Chart.yaml", Data: "apiVersion: v2\nname: demo\nversion: 1.0.0\n"},
		targz.Entry{Name: "demo/templates/x.yaml", Link: "../../../etc/passwd", Kind: '2'})
}

// refusedVersion is a registry with a version that is refused, and what it takes to try it.
func refusedVersion(t *testing.T) (server *registry.Registry, ref reference.Reference, step func(time.Duration), sources *Sources, try func() error) {
	t.Helper()
	server = registry.Start(t, registry.Options{})
	dir := t.TempDir()
	ownCredentialsFor(t, dir, server, "", "")
	sources, clock := remoteSources(t, Options{CredentialsDir: dir})
	server.Push(t, hostileVersion(t), "charts/demo", "1.0.0")
	ref = inRegistry(server.URL("charts/demo"), "1.0.0")
	return server, ref, clock.Step, sources, func() error {
		digest, err := sources.Resolve(t.Context(), ref)
		if err == nil {
			_, err = sources.Fetch(t.Context(), ref, digest)
		}
		return err
	}
}

// An exact version that was refused is asked for again, seldom, and used when it was
// published anew.
func TestRefusedVersionIsAskedForAgain(t *testing.T) {
	server, _, step, _, try := refusedVersion(t)
	for waited := time.Duration(0); waited < time.Hour; {
		failed := asError(t, try())
		if failed.Reason != failure.ArtifactRefused || failed.RetryAfter <= 0 || failed.RetryAfter > failure.MaxRetry*5/4 {
			t.Fatalf("after %s: %s, again after %s: %v", waited, failed.Reason, failed.RetryAfter, failed)
		}
		if failed := asError(t, try()); failed.Reason != failure.ArtifactRefused {
			t.Fatal(failed)
		}
		step(failed.RetryAfter)
		waited += failed.RetryAfter
	}
	if asked := server.Requests(t); len(asked) > 40 {
		t.Errorf("in an hour it was asked %d times: %q", len(asked), asked)
	}
	server.Push(t, chartVersion(t, "1.0.0"), "charts/demo", "1.0.0")
	step(2 * failure.MaxRetry)
	if err := try(); err != nil {
		t.Error(err)
	}
	server.Requests(t)
	step(24 * time.Hour)
	if err := try(); err != nil {
		t.Error(err)
	}
	if asked := server.Requests(t); len(asked) > 0 {
		t.Errorf("what is good is asked for again: %q", asked)
	}
}

// Somebody who mended it needn't wait.
func TestRefusedVersionIsReconsidered(t *testing.T) {
	server, ref, step, sources, try := refusedVersion(t)
	for range 10 {
		step(asError(t, try()).RetryAfter)
	}
	woken := 0
	digest := expectResolved(t, sources, ref)
	_, err := sources.Fetch(flight.WithWaker(t.Context(), flight.Waiter{Kind: "me"}, func() { woken++ }), ref, digest)
	if failed := asError(t, err); failed.RetryAfter < time.Minute {
		t.Errorf("it is asked again after %s", failed.RetryAfter)
	}
	server.Push(t, chartVersion(t, "1.0.0"), "charts/demo", "1.0.0")
	if err := try(); err == nil {
		t.Error("it was asked too early")
	}
	other := ref
	other.Namespace, other.Chart.Version = "team-b", "2.0.0"
	sources.Reconsider(other)
	if woken != 0 {
		t.Error("it is another one")
	}
	sources.Reconsider(ref)
	if woken != 1 {
		t.Errorf("who was told is woken %d times", woken)
	}
	if err := try(); err != nil {
		t.Error(err)
	}
}

// What a reference names by its digest, and is refused, stays so.
func TestRefusedDigestIsNotAskedForAgain(t *testing.T) {
	server, ref, step, sources, try := refusedVersion(t)
	_ = try()
	ref.Chart.OCI = ref.Chart.OCI.DeepCopy()
	ref.Chart.OCI.Digest = server.Push(t, hostileVersion(t), "charts/demo", "1.0.0")
	again := func() error {
		digest, err := sources.Resolve(t.Context(), ref)
		if err == nil {
			_, err = sources.Fetch(t.Context(), ref, digest)
		}
		return err
	}
	if failed := asError(t, again()); failed.Reason != failure.ArtifactRefused || failed.RetryAfter != 0 {
		t.Errorf("%v, again after %s", failed, failed.RetryAfter)
	}
	server.Requests(t)
	for range 3 {
		step(time.Hour)
		sources.Reconsider(ref)
		if failed := asError(t, again()); failed.Reason != failure.ArtifactRefused {
			t.Error(failed)
		}
	}
	if asked := server.Requests(t); len(asked) > 0 {
		t.Errorf("it is asked for again: %q", asked)
	}
}
