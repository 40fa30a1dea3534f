// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"regexp"
	"strings"

	"oras.land/oras-go/v2/errdef"
	orasremote "oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/errcode"

	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/source/auth"
	"github.com/cluster-chandler/chandler/internal/source/reference"
	"github.com/cluster-chandler/chandler/internal/versions"
)

const (
	// tagPage is how many tags are asked for at once; many registries send fewer.
	tagPage = 1000
	// maxTagPages and maxTags bound what a registry may send: signatures have tags, too.
	maxTagPages = 1000
	maxTags     = 2 * versions.MaxPublished
	// maxTagBytes bounds one answer, of a registry that sends all tags at once.
	maxTagBytes = 16 << 20
)

// signatureTag is a tag of what belongs to a manifest, as its signatures do.
var signatureTag = regexp.MustCompile(`^sha256-[0-9a-f]{64}($|[.])`)

// Versions lists the tags. There is no way to ask whether they have changed.
func (a Artifact) Versions(ctx context.Context, c *auth.Client) ([]string, error) {
	repository, err := a.repository(c)
	if err != nil {
		return nil, err
	}
	found := tagReader{Client: repository.Client, verbatim: a.kind.Verbatim()}
	repository.Client = &found
	repository.TagListPageSize, repository.TagListMaxPages = tagPage, maxTagPages
	err = repository.Tags(ctx, "", func([]string) error { return nil })
	switch {
	case isNotFound(err):
		return nil, failure.NotPublished("the registry has no such repository, or doesn't show it to these credentials; publish it, or correct oci.url")
	case errors.Is(err, errdef.ErrTooManyPages):
		return nil, failure.TooMany("pages of tags", maxTagPages)
	}
	return found.versions, err
}

// tagReader takes the versions from pages of tags as they come. The library would hold all of
// a page in memory, twice; it is left with the links to further ones.
type tagReader struct {
	orasremote.Client
	verbatim bool // tags that are no versions count, too
	seen     int
	versions []string
}

// Do implements the registry client of oras.
func (t *tagReader) Do(request *http.Request) (*http.Response, error) {
	response, err := t.Client.Do(request)
	if err != nil || response.StatusCode != http.StatusOK {
		return response, err
	}
	defer auth.Release(response.Body)
	limited := &io.LimitedReader{R: response.Body, N: maxTagBytes}
	if err := t.read(json.NewDecoder(limited)); err != nil {
		if limited.N <= 0 {
			err = failure.TooLarge("a page of the list of tags", maxTagBytes)
		}
		return nil, err
	}
	response.Body = io.NopCloser(strings.NewReader("{}"))
	return response, nil
}

// read takes the tags of {"name": ..., "tags": [...]}.
func (t *tagReader) read(page *json.Decoder) error {
	var inTags bool
	for depth := 0; ; {
		token, err := page.Token()
		if err != nil {
			return err
		}
		switch token := token.(type) {
		case json.Delim:
			if token == '{' || token == '[' {
				depth++
			} else if depth--; depth == 0 {
				return nil
			}
			inTags = inTags && token == '['
		case string:
			if depth == 2 && inTags {
				if err := t.take(token); err != nil {
					return err
				}
			} else if depth == 1 {
				inTags = token == "tags"
			}
		}
	}
}

// take takes a tag that is a version.
func (t *tagReader) take(tag string) error {
	if t.seen++; t.seen > maxTags {
		return failure.TooMany("tags", maxTags)
	}
	switch version := versionOfTag(tag); {
	case len(tag) > versions.MaxLength:
		return nil
	case versions.IsExact(version):
		t.versions = append(t.versions, version)
	case t.verbatim && !signatureTag.MatchString(tag):
		t.versions = append(t.versions, tag)
	}
	if len(t.versions) > versions.MaxPublished {
		return failure.TooMany("tags", versions.MaxPublished)
	}
	return nil
}

// Pin is the digest of the version's manifest.
func (a Artifact) Pin(ctx context.Context, c *auth.Client) (string, error) {
	repository, err := a.repository(c)
	if err != nil {
		return "", err
	}
	// Not a HEAD request: some registries leave the digest out of its answer.
	described, body, err := repository.Manifests().FetchReference(ctx, reference.TagOf(a.version))
	if errors.Is(err, errdef.ErrNotFound) {
		return "", failure.NotPublished("the registry lists tag %s, but doesn't have it; push it again, or name another version", reference.TagOf(a.version))
	}
	if err != nil {
		return "", err
	}
	auth.Release(body) // it is verified when it is read by this digest
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
