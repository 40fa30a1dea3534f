// SPDX-License-Identifier: Apache-2.0

package github

import (
	"encoding/json"
	"strings"

	"github.com/google/go-github/v89/github"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/versions"
	"github.com/cluster-chandler/chandler/internal/yamllimit"
)

// maxAssets is how many files a release at GitHub can have.
const maxAssets = 1000

// published is a release, as far as it is of use.
type published struct {
	tag    string
	draft  bool
	assets []asset
}

// asset is a file of a release.
type asset struct {
	id     int64
	name   string
	size   int64  // bytes
	digest string // as the server says it; "" if it doesn't
}

// maxReleaseValues bounds what is told of a release: of each of 1000 files, some 70 values.
const maxReleaseValues = 200_000

// parseRelease reads what the API tells of one release.
func parseRelease(data []byte) (published, error) {
	var read github.RepositoryRelease
	if yamllimit.DecodeJSON(data, maxReleaseValues, &read) != nil {
		return published{}, notGitHub()
	}
	if len(read.Assets) > maxAssets {
		return published{}, failure.New(failure.ArtifactTooLarge, "the release has more than %d files, the most that are accepted; publish them as one archive", maxAssets)
	}
	found := published{tag: read.GetTagName(), draft: read.GetDraft()}
	for _, file := range read.Assets {
		if state := file.GetState(); state != "" && state != "uploaded" {
			continue // it is still on its way
		}
		if file.GetID() <= 0 || file.GetSize() < 0 {
			return published{}, notGitHub()
		}
		found.assets = append(found.assets, asset{id: file.GetID(), name: file.GetName(), size: int64(file.GetSize()), digest: promised(file.GetDigest())})
	}
	return found, nil
}

// promised is a digest that the server names a file by, if it can be used.
func promised(digest string) string {
	digest = strings.ToLower(digest)
	if !artifact.IsDigest(digest) {
		return ""
	}
	return digest
}

// maxTag is what a prefix and a version may have together. Longer tags are nobody's.
const maxTag = 128 + versions.MaxLength

// parseTags reads a page of the list of releases. Those that nobody but their authors
// may see are left out.
func parseTags(data []byte) ([]string, error) {
	var listed [100]struct { // what is asked for; Go leaves out more
		Tag   string `json:"tag_name"`
		Draft bool   `json:"draft"`
	}
	if json.Unmarshal(data, &listed) != nil {
		return nil, notGitHub()
	}
	var tags []string
	for _, one := range listed {
		if !one.Draft && one.Tag != "" && len(one.Tag) <= maxTag {
			tags = append(tags, one.Tag)
		}
	}
	return tags, nil
}

// notGitHub is the error of an answer that the API wouldn't give.
func notGitHub() *failure.Error {
	return failure.New(failure.ArtifactInvalid, "what the server sends isn't what GitHub's API does; correct github.url or github.apiURL")
}
