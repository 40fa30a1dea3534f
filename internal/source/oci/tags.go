// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"context"
	"errors"
	"net/http"
	"regexp"
	"strings"

	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry/remote/errcode"

	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/source/auth"
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
func (a Artifact) Versions(ctx context.Context, c *auth.Client) (found []string, err error) {
	repository, err := a.repository(c)
	if err != nil {
		return nil, err
	}
	repository.MaxMetadataBytes, repository.TagListPageSize, repository.TagListMaxPages = maxTagBytes, tagPage, maxTagPages
	seen := 0
	err = repository.Tags(ctx, "", func(page []string) error {
		if seen += len(page); seen > maxTags {
			return failure.TooMany("tags", maxTags)
		}
		for _, tag := range page {
			switch version := strings.ReplaceAll(tag, "_", "+"); { // see [reference.TagOf]
			case len(tag) > versions.MaxLength:
			case versions.IsExact(version):
				found = append(found, version)
			case a.kind.Verbatim() && !signatureTag.MatchString(tag): // it may be called as it likes
				found = append(found, tag)
			}
		}
		if len(found) > versions.MaxPublished {
			return failure.TooMany("tags", versions.MaxPublished)
		}
		return nil
	})
	switch answer, _ := errors.AsType[*errcode.ErrorResponse](err); {
	case answer != nil && answer.StatusCode == http.StatusNotFound:
		return nil, failure.NotPublished("the registry has no such repository, or doesn't show it to these credentials; publish it, or correct oci.url")
	case errors.Is(err, errdef.ErrTooManyPages):
		return nil, failure.TooMany("pages of tags", maxTagPages)
	}
	return found, err
}

// Pin is the digest of the version's manifest.
func (a Artifact) Pin(ctx context.Context, c *auth.Client) (string, error) {
	repository, err := a.repository(c)
	if err != nil {
		return "", err
	}
	described, _, err := a.manifest(ctx, repository)
	return described.Digest.String(), err
}
