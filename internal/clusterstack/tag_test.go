// SPDX-License-Identifier: Apache-2.0

package clusterstack

import (
	"slices"
	"strings"
	"testing"
)

func TestTagNamesAndClassNames(t *testing.T) {
	cases := map[string]struct {
		tag   Tag
		class string
	}{
		"docker-scs-1-31-v2": {
			Tag{"docker", "scs", "1.31", Version{2, ChannelStable, ""}}, "docker-scs-1-31-v2",
		},
		"openstack-scs-1-34-v0-sha-ab12ef3": {
			Tag{"openstack", "scs", "1.34", Version{0, "sha", "ab12ef3"}}, "openstack-scs-1-34-v0-sha.ab12ef3",
		},
	}
	for text, want := range cases {
		got, err := ParseTag(text)
		if err != nil || got != want.tag {
			t.Errorf("ParseTag(%q) = %+v, %v; want %+v", text, got, err, want.tag)
		}
		if got.String() != text || got.ClassName() != want.class {
			t.Errorf("%q is written as tag %q and class %q, want %q", text, got, got.ClassName(), want.class)
		}
		if of, err := ParseClassName(want.class); err != nil || of != want.tag {
			t.Errorf("ParseClassName(%q) = %+v, %v; want %+v", want.class, of, err, want.tag)
		}
	}
	archive := cases["docker-scs-1-31-v2"].tag.AddonArchive("v0-sha.ab12")
	if archive != "docker-scs-1-31-cluster-addon-v0-sha.ab12.tgz" {
		t.Errorf("AddonArchive() = %q", archive)
	}
}

func TestTagsThatAreRefused(t *testing.T) {
	for _, text := range []string{
		"", "-", "----", "docker-scs-1-31", "docker-scs-1-31-2", "docker-scs-1-31-v", "docker-scs-1-31-v02", "docker-scs-a-31-v2",
		"docker-scs-1-31-v2-beta", "docker-scs-1-31-v2-stable-1", "docker-scs-1-31-v2-beta-1-2", "docker-scs-1-31-v2-be ta-1",
		"Docker-scs-1-31-v2", "dock/er-scs-1-31-v2", "docker-scs-1-31-v2\n", "docker-scs-1-31-v99999999999", strings.Repeat("a", 300) + "-scs-1-31-v2",
	} {
		if tag, err := ParseTag(text); err == nil {
			t.Errorf("ParseTag(%q) = %+v", text, tag)
		}
	}
	for _, text := range []string{"docker-scs-1-31-v2-beta-1", "docker-scs-1-31-v2.1", "docker-scs-1-31-v2-beta.1.2", "docker-scs-1-31-v2-beta.1-2", "base"} {
		if tag, err := ParseClassName(text); err == nil {
			t.Errorf("ParseClassName(%q) = %+v", text, tag)
		}
	}
}

// Oldest first.
func TestVersionsInOrder(t *testing.T) {
	ordered := []string{"v0-beta.3", "v0-beta.10", "v0-beta.x", "v0-sha.1", "v0", "v1-beta.1", "v1", "v2", "v10"}
	var versions []Version
	for _, text := range ordered {
		v, err := ParseVersion(text)
		if err != nil {
			t.Fatal(err)
		}
		versions = append(versions, v)
	}
	shuffled := slices.Clone(versions)
	slices.Reverse(shuffled)
	slices.SortFunc(shuffled, Version.Compare)
	if !slices.Equal(shuffled, versions) {
		t.Errorf("sorted: %v, want %v", shuffled, ordered)
	}
	for i, a := range versions {
		for j, b := range versions {
			if got, back := a.Compare(b), b.Compare(a); got != -back || (got == 0) != (i == j) {
				t.Errorf("%s against %s is %d, and %d the other way round", a, b, got, back)
			}
		}
	}
}

func TestSameLine(t *testing.T) {
	of := func(text string) Tag {
		tag, err := ParseTag(text)
		if err != nil {
			t.Fatal(err)
		}
		return tag
	}
	if !of("docker-scs-1-31-v1").SameLine(of("docker-scs-1-31-v2-beta-1")) {
		t.Error("v1 and v2 of one stack are of one line")
	}
	if of("docker-scs-1-31-v1").SameLine(of("docker-scs-1-32-v1")) {
		t.Error("another minor version of Kubernetes is another line")
	}
}

func FuzzParseTag(f *testing.F) {
	for _, seed := range []string{"docker-scs-1-31-v2", "docker-scs-1-31-v0-sha-ab12", "docker-scs-1-31-v0-sha.ab12", "a-b-c-d-e-f-g"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if tag, err := ParseTag(text); err == nil {
			if tag.String() != text {
				t.Errorf("%q is written as %q", text, tag)
			}
			if back, err := ParseClassName(tag.ClassName()); err != nil || back != tag {
				t.Errorf("class name %q is read as %+v, %v", tag.ClassName(), back, err)
			}
			if tag.Version.Compare(tag.Version) != 0 {
				t.Errorf("%q isn't equal to itself", text)
			}
		}
	})
}
