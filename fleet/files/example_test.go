// SPDX-License-Identifier: Apache-2.0

package files_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/cluster-chandler/chandler/fleet"
	"github.com/cluster-chandler/chandler/fleet/files"
	"github.com/cluster-chandler/chandler/fleet/fleettest"
	"github.com/cluster-chandler/chandler/fleet/internal/controlplane"
)

func TestMain(m *testing.M) { controlplane.Main(m) }

// Each context of each file in the directory is a cluster. In TrustedPaths it may run a program for its credentials.
func Example() {
	dir, err := os.MkdirTemp("", "kubeconfigs")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := os.WriteFile(filepath.Join(dir, "prod"), fleettest.KubeconfigOf(controlplane.Config()), 0o600); err != nil {
		fmt.Println(err)
		return
	}
	source, err := files.New(files.Options{Paths: []string{dir}})
	if err != nil {
		fmt.Println(err)
		return
	}
	provider := fleet.NewProvider(fleet.Options{Sources: []fleet.Source{source}, AllowLoopback: true})
	controlplane.Run(provider, nil, "files#only") // as the context is called
	// Output: files#only: Connected
}
