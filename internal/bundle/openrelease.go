// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/clusterstack"
	"github.com/cluster-chandler/chandler/internal/message"
)

// stem starts the names of a release's archives: provider, name, and the minor
// version of Kubernetes.
var stem = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._]*-[A-Za-z0-9._]+-\d+-\d+$`)

// open finds the release's root, its metadata and the archive of its add-ons.
func (r *reading) open() error {
	r.root = artifact.OnlyDirectory(r.Names())
	data, found, err := r.ReadYAML(r.root + clusterstack.MetadataFile)
	if err != nil {
		return err
	}
	if !found {
		return refuse("the bundle has no %s, so it is no release of a Cluster Stack; list the charts in spec.addons, or name a release in spec.source", clusterstack.MetadataFile)
	}
	if r.metadata, err = clusterstack.ParseMetadata(data); err != nil {
		return refuse("%w", err)
	}
	if r.archive, err = r.findArchive(); err != nil {
		return err
	}
	about := "Cluster Stack release " + r.stack()
	if r.metadata.Kubernetes != "" {
		about += " for Kubernetes " + r.metadata.Kubernetes
	}
	if tag, err := clusterstack.ParseTag(r.from.Version); err == nil && tag.String() != r.stack() {
		about += ", with the tag " + tag.String()
	}
	r.notes = append(r.notes, about)
	return nil
}

// clusterStack returns the one that the stack asks for, "" if it doesn't say.
func (r *reading) clusterStack() string {
	if tag, err := clusterstack.ParseTag(r.from.Version); err == nil {
		return tag.Stack
	}
	return r.from.ClusterStack
}

// findArchive finds the archive of the add-ons, in the version that metadata.yaml says.
func (r *reading) findArchive() (string, error) {
	suffix := "-cluster-addon-" + r.metadata.ClusterAddon + ".tgz"
	var found []string
	for _, name := range r.Names() {
		file, in := strings.CutPrefix(name, r.root)
		if front, ok := strings.CutSuffix(file, suffix); in && ok && stem.MatchString(front) {
			found = append(found, name)
		}
	}
	if wanted := r.clusterStack(); wanted != "" {
		name := r.root + wanted + suffix
		if !slices.Contains(found, name) {
			return "", refuse("the bundle has no %s, which it has to have by its tag and %s%s; publish the release with it, or name another one",
				wanted+suffix, clusterstack.MetadataFile, r.others(found))
		}
		return name, nil
	}
	if len(found) != 1 {
		return "", refuse("the bundle has %d archives named <provider>-<name>-<major>-<minor>%s, not one; %s says that version of the add-ons",
			len(found), suffix, clusterstack.MetadataFile)
	}
	return found[0], nil
}

// others lists archives that are there in the place of the one that is wanted.
func (r *reading) others(found []string) string {
	if len(found) == 0 {
		return ""
	}
	return ", but " + message.List(found, ", ", message.Few)
}

// stack returns the name of the release: the tag that it was published with.
func (r *reading) stack() string {
	front, _, _ := strings.Cut(path.Base(r.archive), "-cluster-addon-")
	return front + "-" + strings.ReplaceAll(r.metadata.ClusterStack.String(), ".", "-")
}
