// SPDX-License-Identifier: Apache-2.0

package github

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/google/go-github/v89/github"
	"golang.org/x/sync/singleflight"
	"k8s.io/utils/clock"

	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/egress"
	"github.com/cluster-chandler/chandler/internal/source/guest"
	"github.com/cluster-chandler/chandler/internal/source/lru"
	"github.com/cluster-chandler/chandler/internal/source/reference"
	"github.com/cluster-chandler/chandler/internal/source/room"
	"github.com/cluster-chandler/chandler/internal/source/webpage"
)

const (
	// maxRelease bounds what the API tells of one release: it has up to 1000 files,
	// and each takes it some 2 KiB.
	maxRelease = 4 << 20 // bytes
	// maxReleasePage bounds 100 releases, with their notes and lists of files.
	maxReleasePage = 32 << 20 // bytes
	// freshRelease is how long an answer is used without asking whether it changed.
	freshRelease = 30 * time.Second
	// releaseCache is how much of releases, and of lists of their tags, is kept in memory.
	releaseCache = 16 << 20 // bytes
)

// Releases are what repositories at GitHub were found to have. What is known is
// asked for with its ETag: an answer that it still holds costs no rate limit.
type Releases struct {
	clock   clock.PassiveClock
	room    *room.Room
	known   *lru.Cache[string, told] // by URL and credential
	flights singleflight.Group
}

// told is what the API told at one address.
type told struct {
	read time.Time // when it was asked for
	etag string

	release published // at the address of one
	tags    []string  // at that of a page of the list
	next    int       // the page after that; 0 if there is none
}

// NewReleases reads answers in the room.
func NewReleases(clock clock.PassiveClock, memory *room.Room) *Releases {
	return &Releases{clock: clock, room: memory, known: lru.New[string](releaseCache, told.bytes)}
}

func (t told) bytes() int64 {
	const overhead = 128
	size := int64(overhead)
	for _, tag := range t.tags {
		size += int64(len(tag)) + 16
	}
	for _, file := range t.release.assets {
		size += int64(len(file.name)+len(file.digest)) + overhead
	}
	return size
}

// question is a part of the API, and what to make of its answer.
type question struct {
	path  string // below the repository
	what  string // the answer is
	most  int64  // bytes
	parse func(data []byte, into *told) error
	none  *failure.Error // what 404 means
}

// at is the question's address, with who asks.
func (q question) at(as *guest.Guest) string {
	return as.Ref.Base().String() + " " + reference.RepositoryOf(as.Ref.Chart.GitHub) + q.path + " " + as.Credential.Fingerprint()
}

// since returns the answer as it was then, or later.
func (s *Releases) since(ctx context.Context, as *guest.Guest, asked question, notBefore time.Time) (told, error) {
	at := asked.at(as)
	for {
		known, found := s.known.Get(at)
		if found && !known.read.Before(notBefore) {
			return known, nil
		}
		result, err, _ := s.flights.Do(at, func() (any, error) {
			answer, err := s.ask(ctx, as, asked, known)
			if err == nil {
				s.known.Put(at, answer)
			}
			return answer, err
		})
		if answer := result.(told); err != nil || !answer.read.Before(notBefore) {
			return answer, err
		}
		// Others began that request, too early.
	}
}

// ask sends the question, or asks whether the known answer still holds.
func (s *Releases) ask(ctx context.Context, as *guest.Guest, asked question, known told) (told, error) {
	now := s.clock.Now()
	client, err := githubClient(as)
	if err != nil {
		return told{}, err
	}
	ctx, reading := s.room.Enter(ctx) // it needs no room any more when it is parsed
	defer reading.Done()
	request, err := client.NewRequest(ctx, http.MethodGet, "repos/"+reference.RepositoryOf(as.Ref.Chart.GitHub)+asked.path, nil)
	if err != nil {
		return told{}, failure.New(failure.ArtifactInvalid, "github.url, github.tagPrefix and version make no address of a release; correct them")
	}
	if known.etag != "" {
		request.Header.Set("If-None-Match", known.etag)
	}
	as.Authorize(request)
	response, err := client.BareDo(request)
	var fault *egress.Fault
	if err != nil && (response == nil || errors.As(err, &fault)) { // of too many redirects, the last answer comes along
		return told{}, err
	}
	defer guest.Release(response.Body)
	host := response.Request.URL.Host
	switch {
	case response.StatusCode == http.StatusNotModified && known.etag != "":
		known.read = now
		return known, nil
	case response.StatusCode == http.StatusNotFound:
		return told{}, asked.none
	case response.StatusCode == http.StatusUnauthorized:
		return told{}, as.Unauthorized(response.Request.URL, host+" answers 401 Unauthorized")
	case response.StatusCode != http.StatusOK:
		return told{}, failure.New(failure.SourceUnavailable, "%s answers %d %s, which isn't expected; correct the address", host, response.StatusCode, http.StatusText(response.StatusCode))
	}
	if err := webpage.Refuse(response.Response); err != nil {
		return told{}, err
	}
	data, err := room.Read(ctx, response.Body, response.ContentLength, asked.what, asked.most)
	if err != nil {
		return told{}, err
	}
	answer := told{read: now, etag: response.Header.Get("ETag"), next: response.NextPage}
	return answer, asked.parse(data, &answer)
}

// githubClient is a client of the API, which shows nobody's credentials by itself.
func githubClient(g *guest.Guest) (*github.Client, error) {
	api := g.Ref.Base().String() + "/"
	// The guest's own client heeds rate limits, for as long as it is kept.
	client, err := github.NewClient(github.WithHTTPClient(g.HTTP), github.WithURLs(&api, &api), github.WithDisableRateLimitCheck())
	if err != nil {
		return nil, failure.New(failure.ArtifactInvalid, "github.apiURL is no URL; correct it")
	}
	return client, nil
}

// find asks for the release.
func (r Release) find(ctx context.Context, as *guest.Guest) (published, error) {
	answer, err := r.releases.since(ctx, as, r.release(), r.releases.clock.Now().Add(-freshRelease))
	if err == nil && (answer.release.tag != r.tag() || answer.release.draft) {
		err = r.release().none
	}
	return answer.release, err
}

// release is the question for the one with the tag.
func (r Release) release() question {
	return question{
		path: "/releases/tags/" + url.PathEscape(r.tag()), what: "the description of the release", most: maxRelease,
		parse: func(data []byte, into *told) (err error) {
			into.release, err = parseRelease(data)
			return err
		},
		none: failure.NotPublished("the server has no release with tag %s in repository %s, or doesn't show it to these credentials; publish it, "+
			"correct github.url, github.tagPrefix or version, or name a Secret in github.secretRef whose token may read the repository", failure.Quote(r.tag()), reference.RepositoryOf(r.GitHubSource)),
	}
}

// fileURL is where a file is, for those who accept its content.
func (r Release) fileURL(as *guest.Guest, file asset) *url.URL {
	return as.Ref.Base().JoinPath("repos", reference.RepositoryOf(r.GitHubSource), "releases", "assets", strconv.FormatInt(file.id, 10))
}

// read gets a file of the release. The request is redirected to another host, which
// gets to see no credentials.
func (r Release) read(ctx context.Context, as *guest.Guest, file asset, what string, most int64) (*guest.File, error) {
	if file.size > most {
		return nil, failure.TooLarge(what, most)
	}
	sent, err := as.File(ctx, r.fileURL(as, file), http.Header{"Accept": {"application/octet-stream"}}, what, most)
	if err == nil && sent == nil {
		r.releases.known.Remove(r.release().at(as)) // it may be another by now
		err = failure.NotPublished("the release lists file %s, but there is none; put it there again", failure.Quote(file.name))
	}
	return sent, err
}
