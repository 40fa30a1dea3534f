// SPDX-License-Identifier: Apache-2.0

package artifact_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/failure"
)

// TestUnpackPlainManifests decides by the content alone.
func TestUnpackPlainManifests(t *testing.T) {
	const bom = "\xef\xbb\xbf"
	large := strings.Repeat("#", fileBytes)
	for name, tc := range map[string]struct{ text, want, reason string }{
		"YAML":                    {"kind: Role\n---\nkind: Role\n", artifact.PlainYAML, ""},
		"JSON":                    {"{\n\t\"kind\": \"Role\"\n}\n", artifact.PlainJSON, ""},
		"with a byte mark":        {bom + `{"kind": "Role"}`, artifact.PlainJSON, ""},
		"YAML that begins so":     {"{kind: Role}", artifact.PlainYAML, ""},
		"as large as may be":      {large, artifact.PlainYAML, ""},
		"too large":               {large + "#", "", failure.ArtifactTooLarge},
		"far too large":           {strings.Repeat("#", 2*fileBytes+1), "", failure.ArtifactTooLarge},
		"nothing":                 {"", "", failure.ArtifactInvalid},
		"blanks":                  {bom + " \n", "", failure.ArtifactInvalid},
		"a web page":              {"\n<!DOCTYPE html><p>", "", failure.ArtifactInvalid},
		"a web page, marked":      {bom + "<html>", "", failure.ArtifactInvalid},
		"UTF-16":                  {"\xff\xfea\x00", "", failure.ArtifactInvalid},
		"Latin-1":                 {"a: \xe4\n", "", failure.ArtifactInvalid},
		"NUL":                     {"a: \x00\n", "", failure.ArtifactInvalid},
		"the start of an archive": {"\x1f\x8b", "", failure.ArtifactInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			limits := artifact.Limits{}.WithDefaults()
			files, err := artifact.Content{Kind: artifact.KindManifests, Archive: []byte(tc.text)}.Unpack(limits)
			if failed, refused := errors.AsType[*failure.Error](err); refused != (tc.reason != "") || refused && failed.Reason != tc.reason {
				t.Fatalf("got %v, want %s", err, tc.reason)
			}
			if tc.reason != "" {
				return
			}
			if len(files) != 1 || files[0].Name != tc.want || string(files[0].Data) != strings.TrimPrefix(tc.text, bom) || !artifact.IsPlain(files) {
				t.Errorf("got %d files", len(files))
			}
			for _, kind := range []artifact.Kind{artifact.KindChart, artifact.KindKustomization, artifact.KindBundle} { // are archives
				_, err := artifact.Content{Kind: kind, Archive: []byte(tc.text)}.Unpack(limits)
				if failed, refused := errors.AsType[*failure.Error](err); !refused || failed.Reason != failure.ArtifactInvalid {
					t.Errorf("as %q: %v", kind, err)
				}
			}
		})
	}
}
