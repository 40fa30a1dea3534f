// SPDX-License-Identifier: Apache-2.0

package source

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/source/layout"
)

// TestVersionsOfOneArchiveAreDownloadedOnce has one archive under many versions, which
// are all fetched while the first of them is being read.
func TestVersionsOfOneArchiveAreDownloadedOnce(t *testing.T) {
	const versions = 20
	archive := chartVersion(t, "1.0.0")
	digest := artifact.Content{Archive: archive}.Digest()
	var downloads atomic.Int32
	twice := make(chan struct{})
	sources, ref, _ := registryBy(t, nil, func(w http.ResponseWriter, r *http.Request) {
		if !strings.Contains(r.URL.Path, "/blobs/") {
			serve(w, manifestType, manifestOf([2]string{layout.ChartLayer, digest}))
			return
		}
		if r.Method == http.MethodGet {
			switch downloads.Add(1) {
			case 1: // goes on when it is asked for again, which it shouldn't be
				select {
				case <-twice:
				case <-time.After(300 * time.Millisecond):
				}
			case 2:
				close(twice)
			}
		}
		serve(w, "application/octet-stream", string(archive))
	})
	artifacts := make(chan *Artifact, versions)
	var done sync.WaitGroup
	for i := range versions {
		done.Go(func() {
			own := ref
			own.Chart = *ref.Chart.DeepCopy()
			own.Chart.Version = fmt.Sprintf("1.0.%d", i)
			fetched, err := sources.Fetch(t.Context(), own, digest)
			if err != nil {
				t.Error(err)
			}
			artifacts <- fetched
		})
	}
	done.Wait()
	close(artifacts)
	expectOne(t, artifacts)
	if got := downloads.Load(); got != 1 {
		t.Errorf("%d downloads of one digest", got)
	}
}
