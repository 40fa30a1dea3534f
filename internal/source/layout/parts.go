// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/clusterstack"
	"github.com/cluster-chandler/chandler/internal/failure"
)

const (
	// maxParts is how many files a bundle may have that are fetched one by one.
	maxParts = 128
	// listingDomain is the first line of a list of files. No manifest of a registry
	// starts like it, and no archive does.
	listingDomain = "chandler release v1\n"
)

// Part is one file of a bundle whose manifest lists them, each with its digest.
type Part struct {
	Name, Digest string
	Size         int64 // bytes
}

// PartOf describes a file.
func PartOf(name string, data []byte) Part {
	return Part{Name: name, Digest: artifact.DigestOf(data), Size: int64(len(data))}
}

// Parts returns the files that a manifest lists, sorted by name: one of a registry,
// or a list of files. It is false of anything else.
func Parts(data []byte, limits artifact.Limits) (parts []Part, listed bool, err error) {
	if bytes.HasPrefix(data, []byte(listingDomain)) {
		parts, err = parseListing(data, limits)
		return parts, err == nil, err
	}
	manifest, err := Parse(data)
	if err != nil || !isRelease(manifest) {
		return nil, false, err
	}
	for _, layer := range manifest.Layers {
		if slices.ContainsFunc(unusedLayers, func(prefix string) bool { return strings.HasPrefix(layer.MediaType, prefix) }) {
			continue
		}
		digest, err := digestOf(layer)
		if err != nil {
			return nil, false, err
		}
		parts = append(parts, Part{Name: layer.Annotations[ocispec.AnnotationTitle], Digest: digest, Size: layer.Size})
	}
	parts, err = Check(parts, limits)
	return parts, err == nil, err
}

// Check passes files that a bundle may have, sorted by name.
func Check(parts []Part, limits artifact.Limits) ([]Part, error) {
	if len(parts) > maxParts {
		return nil, failure.New(failure.ArtifactTooLarge, "it has more than %d files, the most that are accepted; publish them as one archive", maxParts)
	}
	left := limits.TotalBytes
	for _, p := range parts {
		if err := artifact.CheckName(p.Name); err != nil {
			return nil, err
		}
		switch {
		case strings.Contains(p.Name, "/"):
			return nil, failure.New(failure.ArtifactRefused, "entry %s has a name with more than one part; rename it", failure.Quote(p.Name))
		case p.Size < 0:
			return nil, failure.New(failure.ArtifactInvalid, "file %s has a size below zero; push it again", failure.Quote(p.Name))
		case p.Size > limits.ArchiveBytes:
			return nil, failure.TooLarge("file "+failure.Quote(p.Name), limits.ArchiveBytes)
		}
		if left -= p.Size; left < 0 {
			return nil, failure.TooLarge("its content", limits.TotalBytes)
		}
	}
	sorted := slices.SortedFunc(slices.Values(parts), func(a, b Part) int { return strings.Compare(a.Name, b.Name) })
	for i := range sorted {
		if i > 0 && sorted[i].Name == sorted[i-1].Name {
			return nil, failure.New(failure.ArtifactRefused, "entry %s is there twice; take one of both out", failure.Quote(sorted[i].Name))
		}
	}
	return sorted, nil
}

// Listing lists files, sorted by name; its digest is that of the bundle.
func Listing(parts []Part) []byte {
	var listing bytes.Buffer
	listing.WriteString(listingDomain)
	for _, p := range parts {
		fmt.Fprintf(&listing, "%s %d %s\n", p.Digest, p.Size, p.Name)
	}
	return listing.Bytes()
}

// parseListing reads what [Listing] writes, and nothing else: what it reads has one
// form only.
func parseListing(listing []byte, limits artifact.Limits) ([]Part, error) {
	broken := failure.New(failure.ArtifactInvalid, "it is no list of files")
	var parts []Part
	for line := range strings.Lines(strings.TrimPrefix(string(listing), listingDomain)) {
		digest, sized, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		size, name, _ := strings.Cut(sized, " ")
		bytes, err := strconv.ParseInt(size, 10, 64)
		if err != nil || !artifact.IsDigest(digest) {
			return nil, broken
		}
		parts = append(parts, Part{Name: name, Digest: digest, Size: bytes})
	}
	parts, err := Check(parts, limits)
	if err == nil && !bytes.Equal(Listing(parts), listing) {
		err = broken
	}
	return parts, err
}

// IsRelease compares a release, whose metadata.yaml is given as JSON, with the tag, or the
// version alone, that it is published under. It is not known to be one if metadata.yaml says no version of a Cluster Stack,
// or if what it is published under is neither.
func IsRelease(published string, metadata []byte, names []string) (known bool, _ error) {
	is, err := clusterstack.ParseMetadata(metadata)
	if err != nil {
		return false, nil //nolint:nilerr // it is no release
	}
	tag, err := clusterstack.ParseTag(published)
	named := err == nil
	if !named {
		if tag.Version, err = clusterstack.ParseVersion(published); err != nil {
			return false, nil //nolint:nilerr // it is published as something else
		}
	}
	const wayOut = "publish each release under its own tag, or correct version"
	if is.ClusterStack != tag.Version {
		return true, fmt.Errorf("what is published as %s is version %s of its Cluster Stack (versions.clusterStack of %s); %s",
			published, is.ClusterStack, clusterstack.MetadataFile, wayOut)
	}
	stem, isOf := strings.TrimSuffix(published, strings.ReplaceAll(tag.Version.String(), ".", "-")), "cluster-addon-"+is.ClusterAddon+".tgz"
	if named && !slices.Contains(names, stem+isOf) {
		if other := slices.IndexFunc(names, func(name string) bool { return strings.HasSuffix(name, "-"+isOf) }); other >= 0 {
			return true, fmt.Errorf("what is published as %s has %s, not %s: it is a release of another Cluster Stack; %s",
				published, failure.Quote(names[other]), stem+isOf, wayOut)
		}
	}
	return true, nil
}
