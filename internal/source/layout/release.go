// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/clusterstack"
)

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

// OnlyDirectory is the one that has all files, with a slash; "" if there is none.
func OnlyDirectory(names []string) string {
	root := ""
	for i, name := range names {
		top, _, below := strings.Cut(name, "/")
		switch {
		case !below, i > 0 && top+"/" != root:
			return ""
		}
		root = top + "/"
	}
	return root
}
