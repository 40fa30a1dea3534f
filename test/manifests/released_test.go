// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/must"
)

// TestCRDsOfReleases compares this checkout's CRDs with those of releases that served more, less, or took more.
func TestCRDsOfReleases(t *testing.T) {
	long.Test(t)
	const name, field = "addons.cluster.x-k8s.io_providerinstances.yaml", "              sandbox:\n"
	crd, err := os.ReadFile(filepath.Join(root, "config/crd/bases", name))
	must.Succeed(t, err)
	for release, c := range map[string]struct{ was, is, says string }{
		"the same":       {},
		"fewer values":   {was: "                - Claiming\n"},
		"another text":   {was: "version of the program", is: "version"},
		"a field more":   {was: field, is: "              gone:\n                type: string\n" + field, says: "status.gone"},
		"a value more":   {was: "                - Claiming\n", is: "                - Claiming\n                - Gone\n", says: "spec.claim"},
		"longer values":  {was: "                maxLength: 128\n", is: "                maxLength: 129\n", says: "spec.version"},
		"another answer": {was: "has(self.leaseName)", is: "true", says: "XValidations"},
	} {
		t.Run(release, func(t *testing.T) {
			older := bytes.Replace(crd, []byte(c.was), []byte(c.is), 1)
			if c.was != "" && bytes.Equal(older, crd) {
				t.Fatalf("the CRD has no %q", c.was)
			}
			dir := t.TempDir()
			must.Succeed(t, os.WriteFile(filepath.Join(dir, name), older, 0o600))
			out, err := exec.CommandContext(t.Context(), "make", "-C", root, "verify-crds", "RELEASED_CRDS="+dir).CombinedOutput()
			if (err != nil) != (c.says != "") || !strings.Contains(string(out), c.says) {
				t.Errorf("make verify-crds: %v\n%s", err, out)
			}
		})
	}
}
