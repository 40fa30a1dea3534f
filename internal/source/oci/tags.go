// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"context"
	"errors"
	"io"
	"net/http"
	"regexp"
	"strings"
	"time"

	"oras.land/oras-go/v2/errdef"
	orasremote "oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/errcode"

	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/source/guest"
	"github.com/cluster-chandler/chandler/internal/source/jsonstream"
	"github.com/cluster-chandler/chandler/internal/source/place"
	"github.com/cluster-chandler/chandler/internal/source/reference"
	"github.com/cluster-chandler/chandler/internal/source/room"
	"github.com/cluster-chandler/chandler/internal/versions"
)

const (
	// tagPage is how many tags are asked for at once; many registries send fewer.
	tagPage = 1000
	// maxTagPages and maxTags bound what a registry may send: signatures have tags, too.
	maxTagPages = 1000
	maxTags     = 2 * place.MaxVersions
	// maxTagBytes bounds one answer, of a registry that sends all tags at once.
	maxTagBytes = 16 << 20
	// maxTagPiece is how much of an answer is held in memory at once.
	maxTagPiece = 64 << 10
)

// signatureTag is a tag of what belongs to a manifest, as its signatures do.
var signatureTag = regexp.MustCompile(`^sha256-[0-9a-f]{64}($|[.])`)

// Versions lists the tags. There is no way to ask whether they have changed.
func (c Artifact) Versions(ctx context.Context, as *guest.Guest, _ time.Time) ([]string, time.Time, error) {
	var asked time.Time // just now
	repository, err := c.repository(as)
	if err != nil {
		return nil, asked, err
	}
	found := &taking{ctx: ctx}
	seen := 0
	repository.TagListPageSize, repository.TagListMaxPages = tagPage, maxTagPages
	repository.Client = tagReader{repository.Client, func(tag string) error {
		if seen++; seen > maxTags {
			return place.TooManyTags(maxTags)
		}
		switch version := versionOfTag(tag); {
		case len(tag) > versions.MaxLength:
			return nil
		case versions.IsExact(version):
			return found.add(version)
		case c.kind.Verbatim() && !signatureTag.MatchString(tag):
			return found.add(tag)
		}
		return nil
	}}
	err = repository.Tags(ctx, "", func([]string) error { return nil })
	switch {
	case isNotFound(err):
		return nil, asked, failure.NotPublished("the registry has no such repository, or doesn't show it to these credentials; publish it, or correct oci.url")
	case errors.Is(err, errdef.ErrTooManyPages):
		return nil, asked, failure.New(failure.ArtifactTooLarge, "its tags come in more than %d parts; name an exact version", maxTagPages)
	}
	return found.versions, asked, room.Why(ctx, err)
}

// tagReader takes the tags from lists as they come. The library would hold all of an
// answer in memory, twice; it is left with the links to further ones.
type tagReader struct {
	orasremote.Client
	take func(tag string) error
}

// Do implements the registry client of oras.
func (t tagReader) Do(request *http.Request) (*http.Response, error) {
	response, err := t.Client.Do(request)
	if err != nil || response.StatusCode != http.StatusOK {
		return response, err
	}
	defer guest.Release(response.Body)
	if err := room.Begin(request.Context()); err != nil {
		return nil, err
	}
	if err := t.read(room.Measured(request.Context(), response.Body)); err != nil {
		return nil, err
	}
	response.Body = io.NopCloser(strings.NewReader("{}"))
	return response, nil
}

func (t tagReader) read(body io.Reader) error {
	limited := &io.LimitedReader{R: body, N: maxTagBytes + 1}
	decoder := jsonstream.New(limited, maxTagPiece)
	err := decoder.Object(func(key string) error {
		if key != "tags" {
			return decoder.Skip()
		}
		return decoder.Array(func() error {
			var tag string
			if err := decoder.Decode(&tag); err != nil {
				return err
			}
			return t.take(tag)
		})
	})
	if err != nil && limited.N <= 0 {
		return failure.TooLarge("a page of the list of tags", maxTagBytes)
	}
	return err
}

// Pin is the digest of the version's manifest.
func (c Artifact) Pin(ctx context.Context, as *guest.Guest) (string, error) {
	repository, err := c.repository(as)
	if err != nil {
		return "", err
	}
	// Not a HEAD request: some registries leave the digest out of its answer.
	described, body, err := repository.Manifests().FetchReference(ctx, reference.TagOf(c.version))
	if errors.Is(err, errdef.ErrNotFound) {
		return "", failure.NotPublished("the registry lists tag %s, but doesn't have it; push it again, or name another version", reference.TagOf(c.version))
	}
	if err != nil {
		return "", err
	}
	guest.Release(body) // it is verified when it is read by this digest
	return described.Digest.String(), nil
}

// isNotFound says that a registry answers 404.
func isNotFound(err error) bool {
	var answer *errcode.ErrorResponse
	return errors.As(err, &answer) && answer.StatusCode == http.StatusNotFound
}

// versionOfTag turns [reference.TagOf] around. What isn't a version then is a tag as it is: names
// of releases may have an underscore.
func versionOfTag(tag string) string { return strings.ReplaceAll(tag, "_", "+") }

var _ place.Catalogue = Artifact{}
