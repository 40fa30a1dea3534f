// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/test/must"
)

// TestIndexThatDidNotChange has repositories which tell by one header or the other that
// their index is the one that was sent before: it isn't sent again.
func TestIndexThatDidNotChange(t *testing.T) {
	archive := chartVersion(t, "2.0.0")
	for header, condition := range map[string]string{"ETag": "If-None-Match", "Last-Modified": "If-Modified-Since"} {
		t.Run(header, func(t *testing.T) {
			index, state, sent, unchanged := "entries:\n  demo:\n  - version: 1.0.0\n    urls: [demo.tgz]\n", `"one"`, 0, 0
			sources, clock, ref := servedBy(t, func(w http.ResponseWriter, r *http.Request) {
				switch {
				case !strings.HasSuffix(r.URL.Path, "/index.yaml"):
					_, _ = w.Write(archive)
				case r.Header.Get(condition) == state:
					unchanged++
					w.WriteHeader(http.StatusNotModified)
				default:
					sent++
					w.Header().Set(header, state)
					fmt.Fprint(w, index)
				}
			})
			ref.Chart.Version = "2.0.0"
			for asked := range 3 {
				if reason := asError(t, get(t, sources, ref)).Reason; reason != failure.ArtifactNotFound {
					t.Fatalf("got %s", reason)
				}
				if sent != 1 || unchanged != asked {
					t.Errorf("asked %d times: it was sent %d times, and said to be unchanged %d times", asked+1, sent, unchanged)
				}
				clock.Step(time.Hour)
			}
			index, state = "entries:\n  demo:\n  - version: 2.0.0\n    urls: [demo.tgz]\n", `"two"`
			expectFetched(t, sources, ref)
			must.Equal(t, 2, sent, "times that it was sent once it changed")
		})
	}
}
