// SPDX-License-Identifier: Apache-2.0

package instances

import (
	"testing"

	"github.com/cluster-chandler/chandler/test/kustomization"
	"github.com/cluster-chandler/chandler/test/must"
)

// overlay is what a user chooses for an instance.
type overlay struct {
	name       string
	namespaces []string // none is all
	filter     string   // "" for none
}

// runsIn is the instance's own namespace.
func (o overlay) runsIn() string { return "chandler-" + o.name }

// write writes the overlay, and returns its directory.
func (o overlay) write(t *testing.T) string {
	t.Helper()
	folder, err := kustomization.Instance{Name: o.name, Namespaces: o.namespaces, Filter: o.filter}.Write(shared.root, t.TempDir())
	must.Succeed(t, err)
	return folder
}
