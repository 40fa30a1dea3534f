// SPDX-License-Identifier: Apache-2.0

package instances

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/cluster-chandler/chandler/test/manager"
	"github.com/cluster-chandler/chandler/test/suite"
)

// shared is what all worlds share.
var shared struct {
	dir  string // for everything that goes away with this run
	root string // of the checkout
}

func TestMain(m *testing.M) { suite.Suite{Name: "instances", Parallel: 3, Prepare: prepare}.Run(m) }

func prepare(ctx context.Context, root, dir string) error {
	shared.root, shared.dir = root, dir
	return buildProgram(ctx)
}

// defaultVersion is what the program under test says its version is.
const defaultVersion = "v0.0.0-test"

// binary is the program, of some version.
func binary(version string) string { return filepath.Join(shared.dir, "chandler-"+version) }

// buildProgram builds it. It tells its version to every server, so that audit logs tell
// instances apart which use the same kubeconfig: they are of different versions. To link
// each takes long, and they differ in nothing else, so the others are copies.
func buildProgram(ctx context.Context) error {
	if _, err := manager.Build(ctx, shared.root, shared.dir, defaultVersion); err != nil {
		return err
	}
	program, err := os.ReadFile(binary(defaultVersion))
	if err != nil {
		return err
	}
	for number := range stampedVersions {
		version := versionNumber(number)
		stamped := bytes.ReplaceAll(program, []byte(defaultVersion), []byte(version))
		if err := os.WriteFile(binary(version), stamped, 0o700); err != nil {
			return err
		}
		out, err := exec.CommandContext(ctx, binary(version), "--version").Output()
		if err != nil {
			return fmt.Errorf("asking the program of version %s for its version: %w", version, err)
		}
		if !bytes.Contains(out, []byte(version)) {
			return fmt.Errorf("the program of version %s says it is %s", version, out)
		}
	}
	return nil
}

// stampedVersions is how many there are besides the default.
const stampedVersions = 4

// versionNumber is as long as the default.
func versionNumber(number int) string { return fmt.Sprintf("v0.0.%d-test", number+1) }
