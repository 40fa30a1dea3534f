// SPDX-License-Identifier: Apache-2.0

package clusterstack

import (
	"cmp"
	"fmt"
	"regexp"

	"github.com/cluster-chandler/chandler/internal/versions"
)

// ChannelCustom stands for all channels but the stable one.
const ChannelCustom = "custom"

// Channel of a Cluster Stack: those of its releases that whoever follows it takes.
// Versions are tags. It is a [versions.Line].
type Channel struct {
	stack string // as in "docker-scs-1-31"
	name  string
}

var channelName = regexp.MustCompile(`^\w+$`)

// ParseChannel reads the name of a Cluster Stack, as in "docker-scs-1-31", and that
// of one of its channels; "" is the stable one.
func ParseChannel(stack, name string) (versions.Line, error) {
	tag, err := ParseTag(stack + "-v0")
	if err != nil || tag.Stack != stack {
		return nil, fmt.Errorf("%.253q isn't the name of a Cluster Stack, as docker-scs-1-31 is", stack)
	}
	if name = cmp.Or(name, ChannelStable); !channelName.MatchString(name) {
		return nil, fmt.Errorf("%.63q isn't the name of a channel, as beta is", name)
	}
	return Channel{stack: stack, name: name}, nil
}

// String names the channel and the Cluster Stack.
func (c Channel) String() string { return "channel " + c.name + " of " + c.stack }

// Allows reports whether the tag is that of a release of the channel.
func (c Channel) Allows(tag string) bool {
	_, ok := c.release(tag)
	return ok
}

// Newer reports whether one release of the Cluster Stack is newer than another, in
// whatever channels they are.
func (c Channel) Newer(one, than string) bool {
	return versions.NewerBy(c.ofStack, Version.Compare, one, than)
}

// Newest returns the newest release of the channel. Other tags are left out. If there is none, the
// error names the newest release of other channels.
func (c Channel) Newest(published []string) (string, error) {
	if newest := versions.NewestBy(c.release, Version.Compare, published); newest != "" {
		return newest, nil
	}
	if newest := versions.NewestBy(c.ofStack, Version.Compare, published); newest != "" {
		return "", fmt.Errorf("it has no release in %s, the newest one of all channels is %q; publish one, or correct channel", c, newest)
	}
	return "", fmt.Errorf("it has no release of %s at all; publish one, or correct clusterStack or url", c.stack)
}

// release reads the tag of a release in the channel.
func (c Channel) release(text string) (Version, bool) {
	version, ok := c.ofStack(text)
	stable := version.Channel == ChannelStable
	return version, ok && (version.Channel == c.name || c.name == ChannelCustom && !stable)
}

// ofStack reads the tag of a release of the Cluster Stack.
func (c Channel) ofStack(text string) (Version, bool) {
	if len(text) > versions.MaxLength {
		return Version{}, false
	}
	tag, err := ParseTag(text)
	return tag.Version, err == nil && tag.Stack == c.stack
}
