// SPDX-License-Identifier: Apache-2.0

package versions_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cluster-chandler/chandler/internal/versions"
	"github.com/cluster-chandler/chandler/test/must"
)

func TestNewest(t *testing.T) {
	published := []string{
		"1.4.0", "1.4.9", "1.4.10", "v1.5.0", "1.5.0", "1.6.0-rc.1", "2.0.0", "2.1.0-alpha.1", "3.0.0+build.9", "3.0.0+build.10",
		"latest", "sha256-0a1b.sig", "2", "2.9", "v", "", "1.4.010", "01.4.0", "1.4.11 ", "9.9.9_x", "1.4.99\n",
	}
	for _, tc := range []struct{ allowed, want string }{
		{"1.4.x", "1.4.10"},
		{"1.4", "1.4.10"},
		{"~1.4", "1.4.10"},
		{"~1.4.2", "1.4.10"},
		{"^1.2", "1.5.0"},
		{">=1.2 <2", "1.5.0"},
		{">= 1.2, < 2", "1.5.0"},
		{"v1.5.x", "1.5.0"},
		{"1.4 - 1.5", "1.5.0"},
		{"~1.4 || ~2.0", "2.0.0"},
		{"1.x", "1.5.0"},
		{"*", "3.0.0+build.10"},
		{">1.4.0 !=1.5.0 <2", "1.4.10"},
		{">=1.6.0-0 <2.0.0", "1.6.0-rc.1"},
		{"~2.1.0-0", "2.1.0-alpha.1"},
		{"~2.1", ""},
		{"~9", ""},
	} {
		t.Run(tc.allowed, func(t *testing.T) {
			allowed, err := versions.ParseRange(tc.allowed)
			must.Succeed(t, err)
			for range 5 {
				if got, err := allowed.Newest(published); got != tc.want || (err == nil) != (tc.want != "") {
					t.Errorf("got %q, want %q", got, tc.want)
				}
				rand.Shuffle(len(published), func(i, j int) { published[i], published[j] = published[j], published[i] })
			}
			if tc.want != "" && !allowed.Allows(tc.want) {
				t.Errorf("it doesn't allow %s", tc.want)
			}
		})
	}
}

func TestWhatIsARange(t *testing.T) {
	for text, want := range map[string]string{
		"1.17.4": "exact", "v1.15.3-rc.1": "exact", "1.0.0+build.7": "exact", "0.0.0": "exact",
		"1.17": "range", "1.17.x": "range", "*": "range", "=1.2.3": "range", ">=1.2 <2": "range", "^v1.2": "range", "1 || 2": "range",
		"latest": "neither", "": "neither", "~": "neither", "stable": "neither", ">=1.2 <": "neither", "1.2.3.4": "neither", "vv1.2.3": "neither",
		"1.2.3 and more": "neither", "V1.2.3": "neither",
	} {
		is := "neither"
		if versions.IsExact(text) {
			is = "exact"
		} else if _, err := versions.ParseRange(text); err == nil {
			is = "range"
		} else if !errors.Is(err, versions.ErrNoRange) {
			t.Errorf("%q: %v", text, err)
		}
		if is != want {
			t.Errorf("%q is %s, want %s", text, is, want)
		}
	}
}

// Where a version can be a tag, a range has to look like one.
func TestWhatLooksLikeARange(t *testing.T) {
	for _, text := range []string{"1.17.x", "1.x", "v1.x", "1.X", "1.x.x", "x", "*", "1.*", ">=1.2", "~1.2", "^1", "=1.2.3", "!=1", "1 - 2", "1||2", "1, 2", "~", ">=latest"} {
		if !versions.IsRange(text) {
			t.Errorf("%q isn't taken for a range", text)
		}
	}
	for _, text := range []string{"", "1.17", "1", "v1", "1.17.4", "latest", "main", "linux", "x86", "1.x86", "x.1", "1.17-x", "docker-scs-1-31-v1", "docker-scs-1-31-v0-x-1", "max", "1.0.0_x", "1.2.3.x"} {
		if versions.IsRange(text) {
			t.Errorf("%q is taken for a range", text)
		}
	}
}

func TestWhatARangeLacks(t *testing.T) {
	allowed, err := versions.ParseRange("~7")
	must.Succeed(t, err)
	if allowed.String() != "the range ~7" {
		t.Errorf("it is called %q", allowed)
	}
	long := "8.0.0-" + strings.Repeat("a", versions.MaxLength)
	if _, err := allowed.Newest([]string{"latest", "1.0.0", "2.0.0-rc.1", long}); err == nil || !strings.Contains(err.Error(), `"~7"`) || !strings.Contains(err.Error(), `the newest is "2.0.0-rc.1"`) {
		t.Errorf("got %v", err)
	}
	if _, err := allowed.Newest([]string{"latest", long}); err == nil || !strings.Contains(err.Error(), "no version at all") {
		t.Errorf("got %v", err)
	}
}

func TestNewer(t *testing.T) {
	ordered := []string{"no version", "1.0.0-alpha.9", "1.0.0-alpha.10", "1.0.0", "1.0.0+build.9", "1.0.0+build.10", "v1.0.1", "1.2.0", "1.10.0"}
	for i, a := range ordered {
		for j, b := range ordered {
			if got := (versions.Range{}).Newer(a, b); got != (i > j) {
				t.Errorf("Newer(%q, %q) = %v", a, b, got)
			}
		}
	}
	if (versions.Range{}).Newer("v1.0.0", "1.0.0") || (versions.Range{}).Newer("1.0.0", "v1.0.0") {
		t.Error("a leading v makes no version newer")
	}
}

func TestManyTags(t *testing.T) {
	var tags []string
	for i := range 10_000 {
		tags = append(tags, fmt.Sprintf("%d.%d.%d", i/1000, i/10%100, i%10), fmt.Sprintf("sha256-%064x.sig", i))
	}
	rand.Shuffle(len(tags), func(i, j int) { tags[i], tags[j] = tags[j], tags[i] })
	allowed, err := versions.ParseRange("^7.3")
	must.Succeed(t, err)
	if got, _ := allowed.Newest(tags); got != "7.99.9" {
		t.Errorf("got %s", got)
	}
}

func FuzzRange(f *testing.F) {
	for _, seed := range []string{"1.4.x", ">=1.2 <2", "1 - 2 || ^3", "v1.2.3-rc.1+b", "*", "||", ">=9999999999999999999999"} {
		f.Add(seed, "1.2.3")
	}
	f.Fuzz(func(t *testing.T, text, version string) {
		allowed, err := versions.ParseRange(text)
		if err != nil {
			return
		}
		newest, err := allowed.Newest([]string{version, "1.2.3"})
		if err == nil && (!allowed.Allows(newest) || !versions.IsExact(newest) || !slices.Contains([]string{version, "1.2.3"}, newest)) {
			t.Errorf("%q: newest is %q", text, newest)
		}
	})
}
