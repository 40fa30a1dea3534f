// SPDX-License-Identifier: Apache-2.0

package kubeversion_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/cluster-chandler/chandler/fleet/kubeversion"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		"v1.36.1": "1.36.1", "1.36.1": "1.36.1", "v1.36": "1.36.0", "v1": "1.0.0", "v1.999.0": "1.999.0",
		"v1.34.2-eks-1": "1.34.2-eks-1", "v1.34.2+rke2r1": "1.34.2+rke2r1", "v1.33.4-gke.1245000": "1.33.4-gke.1245000",
		"v1.37.0-alpha.3.1234+0123456789abcdef-dirty": "1.37.0-alpha.3.1234+0123456789abcdef-dirty",
		"":         "",
		"v":        "",
		"what":     "",
		"vv1.36.1": "", "v1.36.1 ": "", "v1.36.1\n": "", "v1.36.1.1": "", "v-1.36.1": "", "v1.36.1<script>": "",
		"v1.1000.0": "", "v1000.1.0": "", "v1.99999999999.0": "", "v1.18446744073709551000.0": "", "v1.18446744073709551616.0": "",
		"v1.36.1-" + strings.Repeat("0", kubeversion.MaxLength): "",
		strings.Repeat("1", 1<<20):                              "",
	} {
		version, err := kubeversion.Parse(text)
		if got := ""; err == nil {
			got = version.String()
			if got != want {
				t.Errorf("%q: %q", text, got)
			}
		} else if want != "" {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// FuzzParse reads any text. What is a version has numbers that loops may count to, and harmless characters.
func FuzzParse(f *testing.F) {
	harmless := regexp.MustCompile(`^v?[0-9A-Za-z.+-]{1,64}$`)
	f.Fuzz(func(t *testing.T, text string) {
		version, err := kubeversion.Parse(text)
		if (version == nil) == (err == nil) {
			t.Fatalf("%v, %v", version, err)
		}
		if err != nil {
			return
		}
		if version.Major() > kubeversion.MaxNumber || version.Minor() > kubeversion.MaxNumber || !harmless.MatchString(text) {
			t.Errorf("%q is read as %s", text, version)
		}
		if again, err := kubeversion.Parse(version.String()); err == nil && !again.Equal(version) {
			t.Errorf("%q is read as %s, and that as %s", text, version, again)
		}
	})
}
