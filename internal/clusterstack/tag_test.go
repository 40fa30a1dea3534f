// SPDX-License-Identifier: Apache-2.0

package clusterstack_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cluster-chandler/chandler/internal/clusterstack"
	"github.com/cluster-chandler/chandler/internal/versions"
	"github.com/cluster-chandler/chandler/test/must"
)

func TestParseTag(t *testing.T) {
	for text, want := range map[string]clusterstack.Tag{
		"docker-scs-1-31-v2":                {"docker-scs-1-31", clusterstack.Version{2, clusterstack.ChannelStable, ""}},
		"openstack-scs-1-34-v0-sha-ab12ef3": {"openstack-scs-1-34", clusterstack.Version{0, "sha", "ab12ef3"}},
	} {
		got, err := clusterstack.ParseTag(text)
		if err != nil || got != want {
			t.Errorf("ParseTag(%q) = %+v, %v; want %+v", text, got, err, want)
		}
		if got.String() != text {
			t.Errorf("%q is written as %q", text, got)
		}
	}
}

func TestTagsThatAreRefused(t *testing.T) {
	for _, text := range []string{
		"", "-", "----", "docker-scs-1-31", "docker-scs-1-31-2", "docker-scs-1-31-v", "docker-scs-1-31-v02", "docker-scs-a-31-v2",
		"docker-scs-1-31-v2-beta", "docker-scs-1-31-v2-stable-1", "docker-scs-1-31-v2-beta-1-2", "docker-scs-1-31-v2-be ta-1",
		"Docker-scs-1-31-v2", "dock/er-scs-1-31-v2", "docker-scs-1-31-v2\n", "docker-scs-1-31-v99999999999", strings.Repeat("a", 300) + "-scs-1-31-v2",
	} {
		if tag, err := clusterstack.ParseTag(text); err == nil {
			t.Errorf("ParseTag(%q) = %+v", text, tag)
		}
	}
}

// Oldest first.
func TestVersionsInOrder(t *testing.T) {
	ordered := []string{"v0-beta.3", "v0-beta.007", "v0-beta.010", "v0-beta.10", "v0-beta.x", "v0-sha.1", "v0", "v1-beta.1", "v1", "v2", "v10"}
	var versions []clusterstack.Version
	for _, text := range ordered {
		v, err := clusterstack.ParseVersion(text)
		must.Succeed(t, err)
		versions = append(versions, v)
	}
	shuffled := slices.Clone(versions)
	slices.Reverse(shuffled)
	slices.SortFunc(shuffled, clusterstack.Version.Compare)
	must.Equal(t, versions, shuffled, "sorted")
	for i, a := range versions {
		for j, b := range versions {
			if got, back := a.Compare(b), b.Compare(a); got != -back || (got == 0) != (i == j) {
				t.Errorf("%s against %s is %d, and %d the other way round", a, b, got, back)
			}
		}
	}
}

func FuzzParseTag(f *testing.F) {
	for _, seed := range []string{"docker-scs-1-31-v2", "docker-scs-1-31-v0-sha-ab12", "docker-scs-1-31-v0-sha.ab12", "a-b-c-d-e-f-g"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if tag, err := clusterstack.ParseTag(text); err == nil {
			if tag.String() != text {
				t.Errorf("%q is written as %q", text, tag)
			}
			must.Equal(t, 0, tag.Version.Compare(tag.Version), text)
		}
	})
}

func channelOf(t *testing.T, stack, name string) versions.Line {
	t.Helper()
	channel, err := clusterstack.ParseChannel(stack, name)
	must.Succeed(t, err)
	return channel
}

func TestNewestOfAChannel(t *testing.T) {
	published := []string{
		"docker-scs-1-31-v1", "docker-scs-1-31-v2", "docker-scs-1-31-v10", "docker-scs-1-31-v11-beta-1",
		"docker-scs-1-31-v0-beta-9", "docker-scs-1-31-v0-beta-10", "docker-scs-1-31-v0-sha-ab12", "docker-scs-1-31-v0-sha_x-1",
		"docker-scs-1-32-v99", "docker-other-1-31-v99", "openstack-scs-1-31-v99", "docker-scs-1-31-v0-beta-" + strings.Repeat("9", 200),
		"latest", "", "v99", "99.0.0", "docker-scs-1-31-v099", "docker-scs-1-31-v12-stable-1", "docker-scs-1-31-v13\n", "docker-scs-1-31",
		"sha256-0a1b.sig", "docker-scs-1-31-v0-beta",
	}
	for _, tc := range []struct{ stack, name, want string }{
		{"docker-scs-1-31", "", "docker-scs-1-31-v10"},
		{"docker-scs-1-31", "stable", "docker-scs-1-31-v10"},
		{"docker-scs-1-31", "beta", "docker-scs-1-31-v11-beta-1"},
		{"docker-scs-1-31", "sha", "docker-scs-1-31-v0-sha-ab12"},
		{"docker-scs-1-31", "sha_x", "docker-scs-1-31-v0-sha_x-1"},
		{"docker-scs-1-31", "custom", "docker-scs-1-31-v11-beta-1"},
		{"docker-scs-1-31", "alpha", ""},
		{"docker-scs-1-32", "stable", "docker-scs-1-32-v99"},
		{"docker-scs-1-33", "stable", ""},
	} {
		channel := channelOf(t, tc.stack, tc.name)
		for range 5 {
			if got, err := channel.Newest(published); got != tc.want || (err == nil) != (tc.want != "") {
				t.Errorf("%s: got %q, want %q", channel, got, tc.want)
			}
			rand.Shuffle(len(published), func(i, j int) { published[i], published[j] = published[j], published[i] })
		}
		if tc.want != "" && !channel.Allows(tc.want) {
			t.Errorf("%s doesn't allow %s", channel, tc.want)
		}
	}
	betas := []string{"docker-scs-1-31-v0-beta-9", "docker-scs-1-31-v0-beta-10", "docker-scs-1-31-v0-beta-8"}
	if got, _ := channelOf(t, "docker-scs-1-31", "beta").Newest(betas); got != "docker-scs-1-31-v0-beta-10" {
		t.Errorf("patches aren't compared as numbers: %s", got)
	}
}

func TestNewerInAChannel(t *testing.T) {
	channel := channelOf(t, "docker-scs-1-31", "custom")
	ordered := []string{"docker-scs-1-32-v3", "docker-scs-1-31-v0-beta-9", "docker-scs-1-31-v0-beta-10", "docker-scs-1-31-v0-sha-1", "docker-scs-1-31-v0", "docker-scs-1-31-v1-beta-1"}
	for i, a := range ordered {
		for j, b := range ordered {
			must.Equal(t, i > j, channel.Newer(a, b), a, b)
		}
	}
	if channel.Newer("", "") || channel.Newer("", ordered[1]) || !channel.Newer(ordered[1], "") {
		t.Error("any release is newer than none, and none is newer than any")
	}
}

func TestWhatAChannelLacks(t *testing.T) {
	channel := channelOf(t, "docker-scs-1-31", "")
	for _, tc := range []struct {
		published []string
		says      string
	}{
		{nil, "it has no release of docker-scs-1-31 at all"},
		{[]string{"docker-scs-1-32-v1", "latest"}, "it has no release of docker-scs-1-31 at all"},
		{[]string{"docker-scs-1-31-v0-beta-9", "docker-scs-1-31-v0-beta-10"}, `in channel stable of docker-scs-1-31, the newest one of all channels is "docker-scs-1-31-v0-beta-10"`},
	} {
		if _, err := channel.Newest(tc.published); err == nil || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("of %q: %v, want %q", tc.published, err, tc.says)
		}
	}
}

func TestChannelsThatAreRefused(t *testing.T) {
	for _, tc := range [][2]string{{"", ""}, {"docker-scs-1", ""}, {"docker-scs-1-31-v1", ""}, {"docker-scs-1-31-v1-beta", ""}, {"Docker-scs-1-31", ""}, {"docker-scs-1-31", "be-ta"}, {"docker-scs-1-31", "be ta"}} {
		if channel, err := clusterstack.ParseChannel(tc[0], tc[1]); err == nil {
			t.Errorf("ParseChannel(%q) = %s", tc, channel)
		}
	}
}

func FuzzChannel(f *testing.F) {
	f.Add("docker-scs-1-31", "beta", "docker-scs-1-31-v0-beta-10", "docker-scs-1-31-v0-beta-9")
	f.Add("docker-scs-1-31", "", "docker-scs-1-31-v2", "1.0.0")
	f.Fuzz(func(t *testing.T, stack, name, a, b string) {
		channel, err := clusterstack.ParseChannel(stack, name)
		if err != nil {
			return
		}
		newest, err := channel.Newest([]string{a, b})
		if back, none := channel.Newest([]string{b, a}); back != newest || (none == nil) != (err == nil) {
			t.Errorf("%s of %q and %q is %q, or %q", channel, a, b, newest, back)
		}
		if err == nil && (!channel.Allows(newest) || newest != a && newest != b || channel.Newer(a, newest) && channel.Allows(a) || channel.Newer(b, newest) && channel.Allows(b)) {
			t.Errorf("%s of %q and %q is %q", channel, a, b, newest)
		}
		if channel.Newer(a, b) && channel.Newer(b, a) {
			t.Errorf("%q and %q are newer than each other", a, b)
		}
	})
}
