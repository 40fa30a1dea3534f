// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"net/http"
	"regexp"
	"strings"
	"time"

	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry/remote/errcode"

	"github.com/cluster-chandler/chandler/internal/source/failure"
	"github.com/cluster-chandler/chandler/internal/versions"
)

const (
	// tagPage is how many tags are asked for at once; many registries send fewer.
	tagPage = 1000
	// maxTagPages and maxTags bound what a registry may send: signatures have tags, too.
	maxTagPages = 1000
	maxTags     = 2 * maxVersions
	// maxTagBytes bounds one answer, of a registry that sends all tags at once.
	maxTagBytes = 16 << 20
)

// signatureTag is a tag of what belongs to a manifest, as its signatures do.
var signatureTag = regexp.MustCompile(`^sha256-[0-9a-f]{64}($|[.])`)

// versions lists the tags. There is no way to ask whether they have changed.
func (c ociChart) versions(ctx context.Context, as *guest, _ time.Time) ([]string, error) {
	repository, err := c.repository(as)
	if err != nil {
		return nil, err
	}
	repository.TagListPageSize, repository.TagListMaxPages, repository.MaxMetadataBytes = tagPage, maxTagPages, maxTagBytes
	var found []string
	seen := 0
	err = repository.Tags(ctx, "", func(tags []string) error {
		if seen += len(tags); seen > maxTags {
			return tooManyTags(maxTags)
		}
		for _, tag := range tags {
			switch version := versionOfTag(tag); {
			case versions.IsExact(version):
				found = append(found, version)
			case c.kind.Verbatim() && !signatureTag.MatchString(tag) && len(tag) <= versions.MaxLength:
				found = append(found, tag)
			}
		}
		if len(found) > maxVersions {
			return tooManyTags(maxVersions)
		}
		return nil
	})
	switch {
	case isNotFound(err):
		return nil, notPublished("the registry has no such repository, or doesn't show it to these credentials; publish it, or correct url")
	case errors.Is(err, errdef.ErrTooManyPages):
		return nil, failure.New(failure.ArtifactTooLarge, "its tags come in more than %d parts; name an exact version", maxTagPages)
	}
	return found, err
}

func tooManyTags(most int) *failure.Error {
	return failure.New(failure.ArtifactTooLarge, "it has more than %d tags; name an exact version", most)
}

// pin is the digest of the version's manifest.
func (c ociChart) pin(ctx context.Context, as *guest) (string, error) {
	repository, err := c.repository(as)
	if err != nil {
		return "", err
	}
	// Not a HEAD request: some registries leave the digest out of its answer.
	described, body, err := repository.Manifests().FetchReference(ctx, tagOf(c.version))
	if errors.Is(err, errdef.ErrNotFound) {
		return "", notPublished("the registry lists tag %s, but doesn't have it", tagOf(c.version))
	}
	if err != nil {
		return "", err
	}
	release(body) // it is verified when it is read by this digest
	return described.Digest.String(), nil
}

// isNotFound says that a registry answers 404.
func isNotFound(err error) bool {
	var answer *errcode.ErrorResponse
	return errors.As(err, &answer) && answer.StatusCode == http.StatusNotFound
}

// versionOfTag turns tagOf around. What isn't a version then is a tag as it is: names
// of releases may have an underscore.
func versionOfTag(tag string) string { return strings.ReplaceAll(tag, "_", "+") }

var _ catalogue = ociChart{}
