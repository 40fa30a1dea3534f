// SPDX-License-Identifier: Apache-2.0

package github

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"time"
)

// Release of a repository.
type Release struct {
	// Tag of the release.
	Tag string
	// Name that people see. A release may have none, or one that is another one's tag.
	Name string
	// Draft hides the release from all but its repository's own people.
	Draft bool
	// Files of the release.
	Files []File

	id int64
}

// File of a release.
type File struct {
	Name string
	Data []byte

	id int64
}

// Publish adds a release to a repository, as in "owner/name", or replaces the one
// with the same tag.
func (s *Server) Publish(repository string, release Release) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ids++
	release.id = s.ids
	release.Files = slices.Clone(release.Files)
	for i := range release.Files {
		s.ids++
		release.Files[i].id = s.ids
	}
	others := slices.DeleteFunc(s.repositories[repository], func(r *Release) bool { return r.Tag == release.Tag })
	s.repositories[repository] = append([]*Release{&release}, others...) // the newest is the first
}

// Withdraw removes a release.
func (s *Server) Withdraw(repository, tag string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.repositories[repository] = slices.DeleteFunc(s.repositories[repository], func(r *Release) bool { return r.Tag == tag })
}

// releaseJSON is a release as the API has it.
type releaseJSON struct {
	URL         string      `json:"url"`
	AssetsURL   string      `json:"assets_url"`
	HTMLURL     string      `json:"html_url"`
	ID          int64       `json:"id"`
	TagName     string      `json:"tag_name"`
	Target      string      `json:"target_commitish"`
	Name        *string     `json:"name"`
	Draft       bool        `json:"draft"`
	Prerelease  bool        `json:"prerelease"`
	CreatedAt   time.Time   `json:"created_at"`
	PublishedAt *time.Time  `json:"published_at"`
	Assets      []assetJSON `json:"assets"`
	Body        *string     `json:"body"`
}

type assetJSON struct {
	URL         string  `json:"url"`
	ID          int64   `json:"id"`
	Name        string  `json:"name"`
	Label       *string `json:"label"`
	ContentType string  `json:"content_type"`
	State       string  `json:"state"`
	Size        int     `json:"size"`
	Digest      *string `json:"digest,omitempty"`
	DownloadURL string  `json:"browser_download_url"`
}

// published is when all releases were, so that their ETags stay.
var published = time.Date(2026, time.March, 2, 10, 0, 0, 0, time.UTC)

func (s *Server) render(repository string, release *Release) releaseJSON {
	api := s.API() + "/repos/" + repository + "/releases"
	rendered := releaseJSON{
		URL: fmt.Sprintf("%s/%d", api, release.id), AssetsURL: fmt.Sprintf("%s/%d/assets", api, release.id),
		HTMLURL: s.URL(repository) + "/releases/tag/" + release.Tag, ID: release.id, TagName: release.Tag, Target: "main",
		Draft: release.Draft, CreatedAt: published, Assets: []assetJSON{},
	}
	if release.Name != "" {
		rendered.Name = &release.Name
	}
	if !release.Draft {
		rendered.PublishedAt = &published
	}
	for _, file := range release.Files {
		asset := assetJSON{
			URL: fmt.Sprintf("%s/assets/%d", api, file.id), ID: file.id, Name: file.Name, ContentType: "application/octet-stream",
			State: "uploaded", Size: len(file.Data), DownloadURL: s.URL(repository) + "/releases/download/" + release.Tag + "/" + file.Name,
		}
		if !s.options.WithoutDigests {
			sum := sha256.Sum256(file.Data)
			digest := "sha256:" + hex.EncodeToString(sum[:])
			asset.Digest = &digest
		}
		rendered.Assets = append(rendered.Assets, asset)
	}
	return rendered
}
