// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/source"
	"github.com/cluster-chandler/chandler/internal/source/layout"
	"github.com/cluster-chandler/chandler/internal/source/unpack"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/targz"
)

// blockedCluster has an archive in two namespaces, and answers when block is closed.
func blockedCluster(t testing.TB) (c *cluster, digest string) {
	t.Helper()
	archive := targz.Chart(t)
	c = newCluster(t, charts("team-a", archive), charts("team-b", archive))
	c.block = make(chan struct{})
	return c, digestOf(archive)
}

// asked waits for the first request.
func (c *cluster) asked() {
	for c.requests.Load() == 0 {
		runtime.Gosched()
	}
}

func TestFailureOfAnotherReferenceIsNotOurs(t *testing.T) {
	c, digest := blockedCluster(t)
	c.fail = func(key client.ObjectKey) error {
		if key.Namespace == "team-a" {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, key.Name, errors.New("no"))
		}
		return nil
	}
	sources := newSources(t, source.Options{Client: c})
	theirs, ours := make(chan error, 1), make(chan error, 1)
	fetch := func(namespace string, result chan<- error) {
		_, err := sources.Fetch(t.Context(), inConfigMap(namespace, "charts", ""), digest)
		result <- err
	}
	go fetch("team-a", theirs)
	c.asked()
	go fetch("team-b", ours)
	close(c.block)
	expectRefused(t, <-ours, "")
	expectRefused(t, <-theirs, failure.SourceUnavailable)
}

func TestRefusalsAreRemembered(t *testing.T) {
	const text = "no archive"
	c := newCluster(t, charts("team-a", []byte(text)), charts("team-b", []byte(text)))
	sources := newSources(t, source.Options{Client: c, Metadata: c.metadata()})
	for range 3 {
		for _, namespace := range []string{"team-a", "team-b"} {
			_, err := sources.Fetch(t.Context(), inConfigMap(namespace, "charts", ""), digestOf(text))
			expectRefused(t, err, failure.ArtifactInvalid)
			if got := asError(t, err).Subject; !strings.Contains(got, namespace) {
				t.Errorf("it is about %s", got)
			}
		}
	}
	must.Equal(t, 2, c.requests.Load(), "requests")
}

func TestDigestIsVerifiedBeforeTheContentIsRead(t *testing.T) {
	sources := newSources(t, source.Options{Client: newCluster(t, charts("team-a", []byte("neither an archive nor what was resolved")))})
	_, err := sources.Fetch(t.Context(), inConfigMap("team-a", "charts", ""), digestOf(targz.Chart(t)))
	expectRefused(t, err, failure.ArtifactChanged)
}

// TestVersionsOfOneArchiveAreDownloadedOnce has one archive under many versions, which
// are all fetched while the first of them is being read.
func TestVersionsOfOneArchiveAreDownloadedOnce(t *testing.T) {
	archive := chartVersion(t, "1.0.0")
	digest := digestOf(archive)
	var downloads atomic.Int32
	let := make(chan struct{})
	sources, ref, _ := registryBy(t, nil, func(w http.ResponseWriter, r *http.Request) {
		if !strings.Contains(r.URL.Path, "/blobs/") {
			serve(w, manifestType, manifestOf([2]string{layout.ChartLayer, digest}))
			return
		}
		downloads.Add(1)
		<-let
		serve(w, "application/octet-stream", string(archive))
	})
	artifacts := make(chan *unpack.Artifact, 20)
	var done sync.WaitGroup
	for i := range cap(artifacts) {
		done.Go(func() {
			fetched, err := sources.Fetch(t.Context(), of(fmt.Sprintf("1.0.%d", i), ref), digest)
			if err != nil {
				t.Error(err)
			}
			artifacts <- fetched
		})
	}
	for downloads.Load() == 0 {
		runtime.Gosched()
	}
	close(let)
	done.Wait()
	close(artifacts)
	expectOne(t, artifacts)
	must.Equal(t, 1, downloads.Load(), "downloads of one digest")
}
