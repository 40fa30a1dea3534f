// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestDependencies are few beside those that a manager of multicluster-runtime has anyway: whoever imports the library
// has that.
func TestDependencies(t *testing.T) {
	const most = 25
	theirs := dependencies(t, "sigs.k8s.io/multicluster-runtime/pkg/manager")
	added := slices.DeleteFunc(dependencies(t, "."), func(name string) bool { return slices.Contains(theirs, name) })
	t.Logf("%d packages: %v", len(added), added)
	if len(added) > most {
		t.Errorf("more than %d packages are added", most)
	}
}

// dependencies returns the packages that a package needs, but for the standard library.
func dependencies(t *testing.T, of string) []string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", of).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(out))
}
