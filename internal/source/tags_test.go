// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/source"
	"github.com/cluster-chandler/chandler/internal/source/reference"
)

// tagServer is a registry of which there is nothing but the list of tags.
func tagServer(t *testing.T, handler http.HandlerFunc) (*source.Sources, reference.Reference, *clocktesting.FakeClock) {
	t.Helper()
	sources, ref, clock := registryBy(t, nil, handler)
	return sources, of("^1", ref), clock
}

func sendTags(w http.ResponseWriter, tags []string) {
	_ = json.NewEncoder(w).Encode(map[string]any{"name": "charts/demo", "tags": tags})
}

// Ten thousand tags come in pages of what size the registry likes.
func TestTagsComeInPages(t *testing.T) {
	var all []string
	for i := range 10_000 {
		all = append(all, fmt.Sprintf("1.%d.%d", i/100, i%100))
	}
	sources, ref, clock := tagServer(t, func(w http.ResponseWriter, request *http.Request) {
		at, _ := strconv.Atoi(request.URL.Query().Get("last"))
		end := min(at+150, len(all))
		if end < len(all) {
			w.Header().Set("Link", fmt.Sprintf(`</v2/charts/demo/tags/list?last=%d&n=150>; rel="next"`, end))
		}
		sendTags(w, all[at:end])
	})
	expectNewest(t, sources, ref, clock.Now(), "1.99.99")
}

func TestHostileTagLists(t *testing.T) {
	var many []string
	for i := range 20_000 {
		many = append(many, fmt.Sprintf("sha256-%064d.sig", i))
	}
	for name, tc := range map[string]struct {
		answer http.HandlerFunc
		reason string
	}{
		"pages without end": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Link", `</v2/charts/demo/tags/list?last=x>; rel="next"`)
			sendTags(w, nil)
		}, failure.ArtifactTooLarge},
		"tags without end": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Link", `</v2/charts/demo/tags/list?last=x>; rel="next"`)
			sendTags(w, many)
		}, failure.ArtifactTooLarge},
		"one answer without end": {func(w http.ResponseWriter, request *http.Request) {
			_, _ = w.Write([]byte(`{"tags":["1.0.0`))
			for request.Context().Err() == nil {
				if _, err := io.WriteString(w, strings.Repeat("x", 1<<20)); err != nil {
					return
				}
			}
		}, failure.ArtifactTooLarge},
		"many short tags": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"tags":[`+strings.Repeat(`"",`, 1_000_000)+`""]}`)
		}, failure.ArtifactTooLarge},
		"no list":     {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`<html>`)) }, failure.SourceUnavailable},
		"no versions": {func(w http.ResponseWriter, _ *http.Request) { sendTags(w, many) }, failure.ArtifactNotFound},
		"too many requests": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "120")
			w.WriteHeader(http.StatusTooManyRequests)
		}, failure.SourceUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			sources, ref, clock := tagServer(t, tc.answer)
			_, err := newest(t, sources, ref, clock.Now())
			known := asError(t, err)
			if known.Reason != tc.reason {
				t.Errorf("got %s: %v, want %s", known.Reason, err, tc.reason)
			}
			if name == "too many requests" && known.RetryAfter < 2*time.Minute {
				t.Errorf("it is asked again after %s", known.RetryAfter)
			}
		})
	}
}

// A list continues wherever the registry says, but not at another host.
func TestListThatGoesOnElsewhere(t *testing.T) {
	asked := false
	elsewhere := serving(t, func(_ http.ResponseWriter, r *http.Request) {
		asked = true
		expectNoSecrets(t, r.Header.Get("Authorization"))
	})
	sources, ref, clock := registryBy(t, map[string]string{"token": sentinelToken}, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Link", "<"+elsewhere.URL+`/v2/demo/tags/list?last=sentinel>; rel="next"`)
		_, _ = io.WriteString(w, `{"name": "demo", "tags": ["1.0.0"]}`)
	})
	_, err := newest(t, sources, of("1.x", ref), clock.Now())
	expectRefused(t, err, failure.SourceUnavailable)
	if asked {
		t.Error("the other host was asked")
	}
}
