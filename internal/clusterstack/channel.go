// SPDX-License-Identifier: Apache-2.0

package clusterstack

import (
	"fmt"

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

// ParseChannel reads the name of a Cluster Stack, as in "docker-scs-1-31", and that
// of one of its channels; "" is the stable one.
func ParseChannel(stack, name string) (Channel, error) {
	tag, err := ParseTag(stack + "-v0")
	if err != nil || tag.Stack() != stack {
		return Channel{}, fmt.Errorf("%.253q isn't the name of a Cluster Stack, as docker-scs-1-31 is", stack)
	}
	if name == "" {
		name = ChannelStable
	}
	if !word.MatchString(name) {
		return Channel{}, fmt.Errorf("%.63q isn't the name of a channel, as beta is", name)
	}
	return Channel{stack: stack, name: name}, nil
}

// String names the channel and the Cluster Stack.
func (c Channel) String() string { return "channel " + c.name + " of " + c.stack }

// Allows says whether the tag is that of a release of the channel.
func (c Channel) Allows(tag string) bool {
	_, ok := c.release(tag)
	return ok
}

// Newer says whether one release of the Cluster Stack is newer than another, in
// whatever channels they are.
func (c Channel) Newer(one, than string) bool {
	a, ok := c.ofStack(one)
	if !ok {
		return false
	}
	b, ok := c.ofStack(than)
	return !ok || a.Compare(b) > 0
}

// Newest returns the newest release of the channel. Other tags are left out.
func (c Channel) Newest(published []string) (newest string, found bool) {
	return newestOf(published, c.release)
}

// None names the newest release of other channels.
func (c Channel) None(published []string) error {
	if newest, found := newestOf(published, c.ofStack); found {
		return fmt.Errorf("it has no release in %s, the newest one of all channels is %q; publish one, or correct channel", c, newest)
	}
	return fmt.Errorf("it has no release of %s at all; publish one, or correct clusterStack or url", c.stack)
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
	return tag.Version, err == nil && tag.Stack() == c.stack
}

func newestOf(published []string, read func(string) (Version, bool)) (newest string, found bool) {
	var best Version
	for _, text := range published {
		if version, ok := read(text); ok && (!found || version.Compare(best) > 0) {
			best, newest, found = version, text, true
		}
	}
	return newest, found
}

var _ versions.Line = Channel{}
