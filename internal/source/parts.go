// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/cluster-chandler/chandler/internal/render"
	"github.com/cluster-chandler/chandler/internal/source/artifact"
	"github.com/cluster-chandler/chandler/internal/source/failure"
)

const (
	// maxParts is how many files a bundle may have that are fetched one by one.
	maxParts = 128
	// listingDomain is the first line of a list of files. No manifest of a registry
	// starts like it, and no archive does.
	listingDomain = "chandler release v1\n"
)

// bundlePart is one file of a bundle whose manifest lists them, each with its digest.
type bundlePart struct {
	name, digest string
	size         int64 // bytes
}

// partOf describes a file.
func partOf(name string, data []byte) bundlePart {
	sum := sha256.Sum256(data)
	return bundlePart{name: name, digest: artifact.FormatDigest(sum[:]), size: int64(len(data))}
}

// partsOf returns the files that a manifest lists, sorted by name: one of a registry,
// or a list of files. It is false of anything else.
func partsOf(manifest []byte, limits artifact.Limits) (parts []bundlePart, listed bool, err error) {
	if bytes.HasPrefix(manifest, []byte(listingDomain)) {
		parts, err = parseListing(manifest, limits)
		return parts, err == nil, err
	}
	layers, layered, err := layersOf(manifest)
	if !layered || err != nil {
		return nil, false, err
	}
	for _, layer := range layers {
		parts = append(parts, partOfLayer(layer))
	}
	for _, p := range parts {
		if err := p.checkDigest(); err != nil {
			return nil, false, err
		}
	}
	parts, err = checkParts(parts, limits)
	return parts, err == nil, err
}

// checkParts passes files that a bundle may have, sorted by name.
func checkParts(parts []bundlePart, limits artifact.Limits) ([]bundlePart, error) {
	if len(parts) > maxParts {
		return nil, failure.New(failure.ArtifactTooLarge, "it has more than %d files, the most that are accepted; publish them as one archive", maxParts)
	}
	left := limits.TotalBytes
	for _, p := range parts {
		if err := artifact.CheckName(p.name, limits); err != nil {
			return nil, err
		}
		switch {
		case strings.Contains(p.name, "/"):
			return nil, failure.New(failure.ArtifactRefused, "entry %s has a name with more than one part; rename it", failure.Quote(p.name))
		case p.size < 0:
			return nil, failure.New(failure.ArtifactInvalid, "file %s has a size below zero; push it again", failure.Quote(p.name))
		case p.size > limits.ArchiveBytes:
			return nil, failure.TooLarge("file "+failure.Quote(p.name), limits.ArchiveBytes)
		}
		if left -= p.size; left < 0 {
			return nil, failure.TooLarge("its content", limits.TotalBytes)
		}
	}
	sorted := slices.SortedFunc(slices.Values(parts), func(a, b bundlePart) int { return strings.Compare(a.name, b.name) })
	for i := range sorted {
		if i > 0 && sorted[i].name == sorted[i-1].name {
			return nil, failure.New(failure.ArtifactRefused, "entry %s is there twice; take one of both out", failure.Quote(sorted[i].name))
		}
	}
	return sorted, nil
}

func (p bundlePart) checkDigest() error {
	if !sha256Digest.MatchString(p.digest) {
		return failure.New(failure.ArtifactInvalid, "file %s has a digest that isn't SHA-256; push it again", failure.Quote(p.name))
	}
	return nil
}

// listingOf lists files, sorted by name; see [Artifact.Digest].
func listingOf(parts []bundlePart) []byte {
	var listing bytes.Buffer
	listing.WriteString(listingDomain)
	for _, p := range parts {
		fmt.Fprintf(&listing, "%s %d %s\n", p.digest, p.size, p.name)
	}
	return listing.Bytes()
}

// parseListing reads what listingOf writes, and nothing else: what it reads has one
// form only.
func parseListing(listing []byte, limits artifact.Limits) ([]bundlePart, error) {
	broken := failure.New(failure.ArtifactInvalid, "it is no list of files")
	var parts []bundlePart
	rest := strings.TrimPrefix(string(listing), listingDomain)
	for rest != "" {
		line, after, whole := strings.Cut(rest, "\n")
		digest, sized, _ := strings.Cut(line, " ")
		size, name, _ := strings.Cut(sized, " ")
		bytes, err := strconv.ParseInt(size, 10, 64)
		p := bundlePart{name: name, digest: digest, size: bytes}
		if !whole || err != nil || p.checkDigest() != nil || len(parts) == maxParts {
			return nil, broken
		}
		parts, rest = append(parts, p), after
	}
	parts, err := checkParts(parts, limits)
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(listingOf(parts), listing) {
		return nil, broken
	}
	return parts, nil
}

// sizeOf is the size of all files together, in bytes.
func sizeOf(parts []bundlePart) (sum int64) {
	for _, p := range parts {
		sum += p.size
	}
	return sum
}

func sortFiles(files []render.File) {
	slices.SortFunc(files, func(a, b render.File) int { return strings.Compare(a.Name, b.Name) })
}
