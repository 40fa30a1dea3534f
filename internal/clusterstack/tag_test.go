// SPDX-License-Identifier: Apache-2.0

package clusterstack_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/cluster-chandler/chandler/internal/clusterstack"
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
