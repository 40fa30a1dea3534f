// SPDX-License-Identifier: Apache-2.0

package clusterstack

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// ChannelStable is the channel of versions without one in their name.
const ChannelStable = "stable"

// Tag identifies a release: for which provider, of which stack, for which minor
// version of Kubernetes, and in which version.
type Tag struct {
	Provider, Name string
	// Kubernetes is the minor version, as in "1.31".
	Kubernetes string
	Version    Version
}

// Version of a release: v2, or v2-beta.7 with the channel "beta".
type Version struct {
	Major int
	// Channel is ChannelStable, or the word in the version.
	Channel string
	// Patch is what follows the channel, "" if it is ChannelStable.
	Patch string
}

var (
	word      = regexp.MustCompile(`^\w+$`)
	part      = regexp.MustCompile(`^[a-z0-9]+$`)
	number    = regexp.MustCompile(`^(0|[1-9]\d{0,8})$`)
	major     = regexp.MustCompile(`^v(0|[1-9]\d{0,8})$`)
	lengthMax = 253 // of a tag, as of an object's name
)

// ParseTag reads the name of a release: five parts with dashes between, as in
// docker-scs-1-31-v2, or seven with a channel, as in docker-scs-1-31-v0-sha-ab12.
func ParseTag(text string) (Tag, error) {
	parts := strings.Split(text, "-")
	if len(text) > lengthMax || len(parts) != 5 && len(parts) != 7 {
		return Tag{}, invalidTag(text)
	}
	tag := Tag{Provider: parts[0], Name: parts[1], Kubernetes: parts[2] + "." + parts[3]}
	if !part.MatchString(tag.Provider) || !part.MatchString(tag.Name) || !number.MatchString(parts[2]) || !number.MatchString(parts[3]) {
		return Tag{}, invalidTag(text)
	}
	version := parts[4]
	if len(parts) == 7 {
		version += "-" + parts[5] + "." + parts[6]
	}
	var err error
	if tag.Version, err = ParseVersion(version); err != nil {
		return Tag{}, invalidTag(text)
	}
	return tag, nil
}

func invalidTag(text string) error {
	if len(text) > lengthMax {
		text = text[:lengthMax] + "..."
	}
	return fmt.Errorf("%q isn't the name of a Cluster Stack release, as docker-scs-1-31-v2 is, or docker-scs-1-31-v0-beta-3", text)
}

// String is the tag, with dashes alone.
func (t Tag) String() string {
	return t.Stack() + "-" + strings.ReplaceAll(t.Version.String(), ".", "-")
}

// Stack is the Cluster Stack that the release is one of, as in docker-scs-1-31.
func (t Tag) Stack() string {
	return t.Provider + "-" + t.Name + "-" + strings.ReplaceAll(t.Kubernetes, ".", "-")
}

// ParseVersion reads a version: v2, or v0-sha.ab12.
func ParseVersion(text string) (Version, error) {
	front, rest, custom := strings.Cut(text, "-")
	channel, patch, dotted := strings.Cut(rest, ".")
	ok := major.MatchString(front) && len(text) <= lengthMax
	if custom {
		ok = ok && dotted && channel != ChannelStable && word.MatchString(channel) && word.MatchString(patch)
	}
	if !ok {
		return Version{}, fmt.Errorf("%.253q isn't a version of a Cluster Stack, as v2 is, or v0-beta.3", text)
	}
	n, err := strconv.Atoi(front[1:])
	if err != nil {
		return Version{}, fmt.Errorf("version %q: %w", text, err)
	}
	if !custom {
		channel = ChannelStable
	}
	return Version{Major: n, Channel: channel, Patch: patch}, nil
}

// String is v2, or v0-sha.ab12.
func (v Version) String() string {
	if v.Channel == ChannelStable {
		return "v" + strconv.Itoa(v.Major)
	}
	return "v" + strconv.Itoa(v.Major) + "-" + v.Channel + "." + v.Patch
}

// Compare orders versions: by major version, a stable one after all others of its
// major version, others by channel and then patch. Patches that are numbers are
// compared as numbers (3 comes before 10), and come before those that aren't.
func (v Version) Compare(other Version) int {
	return cmp.Or(
		cmp.Compare(v.Major, other.Major),
		compareBool(v.Channel == ChannelStable, other.Channel == ChannelStable),
		cmp.Compare(v.Channel, other.Channel),
		comparePatch(v.Patch, other.Patch),
	)
}

func comparePatch(a, b string) int {
	numeric := func(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }
	if !numeric(a) || !numeric(b) {
		return cmp.Or(compareBool(numeric(b), numeric(a)), cmp.Compare(a, b))
	}
	// Longer than a machine's numbers, perhaps: without leading zeros the longer one is greater.
	short, other := strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0")
	return cmp.Or(cmp.Compare(len(short), len(other)), cmp.Compare(short, other), cmp.Compare(a, b))
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}
