// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestMakeTest prints what `make test` runs: the tests of a package that starts no control plane need none.
func TestMakeTest(t *testing.T) {
	for pkg, builds := range map[string]bool{"./internal/stack ./internal/drift": false, "./internal/deliver": true} {
		cmd := exec.CommandContext(t.Context(), "make", "--dry-run", "test", "PKG="+pkg)
		cmd.Dir, cmd.Env = root, append(os.Environ(), "MAKEFLAGS=")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if got := strings.Contains(string(out), "go -C hack/controlplane run"); got != builds {
			t.Errorf("%s: control planes are built: %t\n%s", pkg, got, out)
		}
	}
}
