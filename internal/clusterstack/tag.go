// SPDX-License-Identifier: Apache-2.0

package clusterstack

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/Masterminds/semver/v3"
)

// ChannelStable is the channel of versions without one in their name.
const ChannelStable = "stable"

// Tag identifies a release of a Cluster Stack.
type Tag struct {
	// Stack says for which provider, of which name, and for which minor version of Kubernetes, as in docker-scs-1-31.
	Stack   string
	Version Version
}

// Version of a release: v2, or v2-beta.7 with the channel "beta".
type Version struct {
	Major int
	// Channel is ChannelStable, or the word in the version.
	Channel string
	// Patch is what follows the channel, "" if it is ChannelStable.
	Patch string
}

// maxLength is that of a tag in bytes, as of an object's name.
const maxLength = 253

const number = `(0|[1-9]\d{0,8})`

// The channel and the patch of a version have a dot between them, but a dash in a tag.
var (
	tagForm = regexp.MustCompile(`^([a-z0-9]+-[a-z0-9]+-` + number + `-` + number + `)-v` + number + `(?:-(\w+)-(\w+))?$`)

	versionForm = regexp.MustCompile(`^v` + number + `(?:-(\w+)\.(\w+))?$`)
)

// ParseTag reads the name of a release: five parts with dashes between, as in
// docker-scs-1-31-v2, or seven with a channel, as in docker-scs-1-31-v0-sha-ab12.
func ParseTag(text string) (Tag, error) {
	parts := tagForm.FindStringSubmatch(text)
	if parts == nil || parts[5] == ChannelStable || len(text) > maxLength {
		return Tag{}, fmt.Errorf("%.253q isn't the name of a Cluster Stack release, as docker-scs-1-31-v2 is, or docker-scs-1-31-v0-beta-3", text)
	}
	return Tag{Stack: parts[1], Version: versionOf(parts[4:])}, nil
}

// String returns the tag, with dashes alone.
func (t Tag) String() string {
	return t.Stack + "-" + strings.ReplaceAll(t.Version.String(), ".", "-")
}

// ParseVersion reads a version: v2, or v0-sha.ab12.
func ParseVersion(text string) (Version, error) {
	parts := versionForm.FindStringSubmatch(text)
	if parts == nil || parts[2] == ChannelStable || len(text) > maxLength {
		return Version{}, fmt.Errorf("%.253q isn't a version of a Cluster Stack, as v2 is, or v0-beta.3", text)
	}
	return versionOf(parts[1:]), nil
}

// versionOf returns the version that has a major version, a channel and a patch. Without a channel it is stable.
func versionOf(parts []string) Version {
	major, _ := strconv.Atoi(parts[0]) // it has at most nine digits
	return Version{Major: major, Channel: cmp.Or(parts[1], ChannelStable), Patch: parts[2]}
}

// String returns v2, or v0-sha.ab12.
func (v Version) String() string {
	return "v" + strconv.Itoa(v.Major) + strings.TrimSuffix("-"+v.preRelease(), "-")
}

// preRelease returns sha.ab12 of v0-sha.ab12, and "" of v2.
func (v Version) preRelease() string {
	if v.Channel == ChannelStable {
		return ""
	}
	return v.Channel + "." + v.Patch
}

// Compare orders versions as semantic ones: by major version, a stable one after all others of its
// major version, others by channel and then patch. Patches that are numbers are
// compared as numbers (3 comes before 10), and come before those that aren't.
func (v Version) Compare(other Version) int {
	a := semver.New(uint64(v.Major), 0, 0, v.preRelease(), "")
	b := semver.New(uint64(other.Major), 0, 0, other.preRelease(), "")
	// To the library each of 10 and 010 comes before the other.
	return cmp.Or(a.Compare(b)-b.Compare(a), strings.Compare(v.Patch, other.Patch))
}
