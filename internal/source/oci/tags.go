// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"regexp"
	"strings"

	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry/remote/errcode"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/source/auth"
	"github.com/cluster-chandler/chandler/internal/versions"
)

const (
	// tagPage is how many tags are asked for at once; many registries send fewer.
	tagPage = 1000
	// maxTagPages and maxTags bound what a registry may send: signatures have tags, too.
	maxTagPages = 1000
	maxTags     = 2 * versions.MaxPublished
	// maxTagBytes bounds all pages together.
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
	pages := &tagPages{Client: c, kind: a.kind, left: maxTagBytes}
	repository.Client, repository.TagListPageSize, repository.TagListMaxPages = pages, tagPage, maxTagPages
	err = repository.Tags(auth.Decoding(ctx), "", func([]string) error { return nil })
	switch answer, _ := errors.AsType[*errcode.ErrorResponse](err); {
	case answer != nil && answer.StatusCode == http.StatusNotFound:
		return nil, notPublished(ctx, repository, "the registry has no such repository, or doesn't show it to these credentials; publish it, or correct oci.url")
	case errors.Is(err, errdef.ErrTooManyPages):
		return nil, failure.TooMany("pages of tags", maxTagPages)
	}
	return pages.found, err
}

// tagPages asks for the pages of a list of tags, and reads the tags. Only the rest of a page is for oras, which would have
// all of its text in memory, and all of its tags, before any is left out.
type tagPages struct {
	*auth.Client
	kind  artifact.Kind
	left  int64 // bytes that may still come
	seen  int
	found []string
}

// Do implements oras' interface of clients.
func (p *tagPages) Do(request *http.Request) (*http.Response, error) {
	response, err := p.Registry.Do(request)
	if err != nil || response.StatusCode != http.StatusOK {
		return response, err
	}
	defer auth.Release(response.Body)
	content := &io.LimitedReader{R: response.Body, N: p.left + 1}
	err = p.read(json.NewDecoder(bufio.NewReader(content)))
	if p.left = content.N - 1; p.left < 0 {
		err = failure.TooLarge("the list of tags", maxTagBytes)
	}
	response.Body = io.NopCloser(strings.NewReader("{}"))
	return response, err
}

// read reads a page.
func (p *tagPages) read(page *json.Decoder) error {
	if _, err := page.Token(); err != nil {
		return err
	}
	for page.More() {
		field, err := page.Token()
		if err != nil {
			return err
		}
		if field == "tags" {
			err = p.readTags(page)
		} else {
			err = page.Decode(&json.RawMessage{})
		}
		if err != nil {
			return err
		}
	}
	_, err := page.Token()
	return err
}

// errNoTags says that a page has something else in the place of its tags.
var errNoTags = errors.New("the tags are no list")

// readTags reads the tags of a page, which may be null.
func (p *tagPages) readTags(list *json.Decoder) error {
	if begin, err := list.Token(); err != nil || begin == nil {
		return err
	} else if begin != json.Delim('[') {
		return errNoTags
	}
	for list.More() {
		var tag string
		if err := list.Decode(&tag); err != nil {
			return err
		}
		if p.seen++; p.seen > maxTags {
			return failure.TooMany("tags", maxTags)
		}
		switch version := strings.ReplaceAll(tag, "_", "+"); { // see [reference.TagOf]
		case len(tag) > versions.MaxLength:
		case versions.IsExact(version):
			p.found = append(p.found, version)
		case p.kind.Verbatim() && !signatureTag.MatchString(tag): // it may be called as it likes
			p.found = append(p.found, tag)
		}
		if len(p.found) > versions.MaxPublished {
			return failure.TooMany("tags", versions.MaxPublished)
		}
	}
	_, err := list.Token()
	return err
}
