// SPDX-License-Identifier: Apache-2.0

package instances

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// overlay is what a user answers to make an instance.
type overlay struct {
	name       string
	namespaces []string // none is all
	filter     string   // "" for none
}

// runsIn is the instance's own namespace.
func (o overlay) runsIn() string { return "chandler-" + o.name }

// write has the overlay written, and returns its directory.
func (o overlay) write(t *testing.T) string {
	t.Helper()
	namespaces := "*"
	if len(o.namespaces) > 0 {
		namespaces = strings.Join(o.namespaces, ",")
	}
	dir := filepath.Join(t.TempDir(), o.name)
	cmd := exec.CommandContext(t.Context(), filepath.Join(shared.dir, "instance"), "--name="+o.name, "--namespaces="+namespaces, "--filter="+o.filter, "--out="+dir)
	cmd.Dir = shared.root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("writing the overlay of instance %s: %v\n%s", o.name, err, out)
	}
	return dir
}
