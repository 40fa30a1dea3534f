// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/test/cost"
	"github.com/cluster-chandler/chandler/test/github"
	"github.com/cluster-chandler/chandler/test/must"
)

func TestHostileReleases(t *testing.T) {
	asset := func(id int, name string) string {
		return fmt.Sprintf(`{"id": %d, "name": %q, "size": 3, "state": "uploaded"}`, id, name)
	}
	release := func(assets ...string) string {
		return `{"tag_name": "1", "assets": [` + strings.Join(assets, ", ") + `]}`
	}
	many := make([]string, 0, 1001)
	for i := range 1001 {
		many = append(many, asset(i+1, fmt.Sprint(i)))
	}
	for name, tc := range map[string]struct {
		answer, reason string
	}{
		"no JSON":          {"sentinel", failure.ArtifactInvalid},
		"a list":           {"[]", failure.ArtifactInvalid},
		"nothing":          {"null", failure.ArtifactNotFound},
		"another release":  {strings.Replace(release(asset(1, "a")), `"1"`, `"2"`, 1), failure.ArtifactNotFound},
		"no name":          {release(`{"id": 1, "size": 3}`), failure.ArtifactNotFound},
		"no number":        {release(`{"name": "a", "size": 3}`), failure.ArtifactInvalid},
		"a size below 0":   {release(`{"id": 1, "name": "a", "size": -3}`), failure.ArtifactInvalid},
		"a huge file":      {release(`{"id": 1, "name": "a", "size": 999999999999}`), failure.ArtifactTooLarge},
		"a path":           {release(asset(1, "../../a")), failure.ArtifactRefused},
		"a directory":      {release(asset(1, "a/b")), failure.ArtifactRefused},
		"a line break":     {release(asset(1, "a\nb")), failure.ArtifactRefused},
		"twice":            {release(asset(1, "a"), asset(2, "a")), failure.ArtifactRefused},
		"too many files":   {release(many...), failure.ArtifactTooLarge},
		"many files":       {release(many[:128+1]...), failure.ArtifactTooLarge},
		"large in sum":     {release(strings.Replace(asset(1, "a"), "3", "9000000", 1), strings.Replace(asset(2, "b"), "3", "9000000", 1), strings.Replace(asset(4, "c"), "3", "9000000", 1), strings.Replace(asset(5, "d"), "3", "9000000", 1)), failure.ArtifactTooLarge},
		"a huge answer":    {`{"tag_name": "1", "body": "` + strings.Repeat("x", 32<<20) + `"}`, failure.ArtifactTooLarge},
		"a deep answer":    {strings.Repeat("[", 1<<18), failure.ArtifactTooLarge},
		"a long name":      {release(asset(1, strings.Repeat("x", 16<<20))), failure.ArtifactInvalid},
		"still on its way": {release(`{"id": 1, "name": "a", "state": "starter"}`), failure.ArtifactNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			w := startGitHub(t, github.Options{})
			w.Intercept(func(w http.ResponseWriter, _ *http.Request) bool {
				_, _ = w.Write([]byte(tc.answer)) // who asked may have read enough
				return true
			})
			expectRefused(t, get(t, w.sources(t, ""), w.bundle("1")), tc.reason)
		})
	}
}

func TestHostileListsOfReleases(t *testing.T) {
	for name, tc := range map[string]struct {
		link, answer, reason string
		requests             int
	}{
		"pages without end": {`<https://x/?page=%d>; rel="next"`, "[]", failure.ArtifactTooLarge, 100},
		"the same page":     {`<https://x/?page=1>; rel="next"`, "[]", failure.ArtifactInvalid, 1},
		"no list":           {"", "{}", failure.ArtifactInvalid, 1},
		"nothing":           {"", "null", failure.ArtifactNotFound, 1},
		"a huge page":       {"", `[{"body": "` + strings.Repeat("x", 32<<20) + `"}]`, failure.ArtifactTooLarge, 1},
		"no tags":           {"", `[{"tag_name": null}, {"tag_name": ""}, {}]`, failure.ArtifactNotFound, 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := startGitHub(t, github.Options{})
			page := 1
			w.Intercept(func(w http.ResponseWriter, _ *http.Request) bool {
				if page++; tc.link != "" {
					w.Header().Set("Link", strings.Replace(tc.link, "%d", fmt.Sprint(page), 1))
				}
				_, _ = w.Write([]byte(tc.answer)) // who asked may have read enough
				return true
			})
			_, err := newest(t, w.sources(t, ""), w.chart("1.x"), w.clock.Now())
			expectRefused(t, err, tc.reason)
			must.Equal(t, tc.requests, len(w.Requests()), "requests")
		})
	}
}

// Empty releases and files take three bytes each in an answer, and hundreds where they are decoded.
func TestMemoryOfReleases(t *testing.T) {
	empty := strings.Repeat("{},", 8<<20/3) + "{}"
	for name, tc := range map[string]struct {
		answer string
		ask    func(*githubWorld) error
	}{
		"files": {`{"tag_name": "1", "assets": [` + empty + `]}`, func(w *githubWorld) error { return get(t, w.sources(t, ""), w.bundle("1")) }},
		"releases": {"[" + empty + "]", func(w *githubWorld) error {
			_, err := newest(t, w.sources(t, ""), w.chart("1.x"), w.clock.Now())
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := startGitHub(t, github.Options{})
			w.Intercept(func(w http.ResponseWriter, _ *http.Request) bool {
				_, _ = w.Write([]byte(tc.answer)) // who asked may have read enough
				return true
			})
			var err error
			cost.OfAll(func() { err = tc.ask(w) }).Expect(t, time.Minute, 128<<20)
			expectRefused(t, err, failure.ArtifactTooLarge)
		})
	}
}
