// SPDX-License-Identifier: Apache-2.0

package instances

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/go-logr/logr"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
)

// concurrency is the number of tests at once. They mostly wait.
const concurrency = "3"

// shared is what all worlds share.
var shared struct {
	dir  string // for everything that goes away with this run
	root string // of the checkout
}

func TestMain(m *testing.M) {
	flag.Parse()
	if testing.Short() {
		fmt.Println("test/instances is skipped: -short is set")
		return
	}
	parallel := flag.Lookup("test.parallel")
	if parallel.Value.String() == parallel.DefValue {
		_ = flag.Set(parallel.Name, concurrency)
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	ctrllog.SetLogger(logr.Discard()) // of this process; those under test have logs of their own
	defer stopServers()
	if err := prepare(); err != nil {
		fmt.Fprintln(os.Stderr, "preparing test/instances:", err)
		return 1
	}
	defer os.RemoveAll(shared.dir)
	return m.Run()
}

func prepare() error {
	var err error
	if shared.root, err = filepath.Abs("../.."); err != nil {
		return err
	}
	if shared.dir, err = os.MkdirTemp("", "chandler-instances-"); err != nil {
		return err
	}
	if err := goBuild(filepath.Join(shared.dir, "instance"), "./hack/instance"); err != nil {
		return err
	}
	return buildProgram()
}

// defaultVersion is what the program under test says its version is.
const defaultVersion = "v0.0.0-test"

// binary is the program, of some version.
func binary(version string) string { return filepath.Join(shared.dir, "chandler-"+version) }

// buildProgram builds it. It tells its version to every server, so that audit logs tell
// instances apart which use the same kubeconfig: they are of different versions. To link
// each takes long, and they differ in nothing else, so the others are copies.
func buildProgram() error {
	args := []string{"-ldflags", "-X github.com/cluster-chandler/chandler/internal/version.gitVersion=" + defaultVersion, "."}
	if os.Getenv("CHANDLER_E2E_RACE") != "" {
		args = append([]string{"-race"}, args...)
	}
	if err := goBuild(binary(defaultVersion), args...); err != nil {
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
		out, err := exec.CommandContext(context.Background(), binary(version), "--version").Output()
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

// goBuild builds a package of the checkout.
func goBuild(path string, args ...string) error {
	cmd := exec.CommandContext(context.Background(), "go", append([]string{"build", "-o", path}, args...)...)
	cmd.Dir, cmd.Env = shared.root, append(os.Environ(), "CGO_ENABLED=0") // as in the image
	if slices.Contains(args, "-race") {
		cmd.Env = append(cmd.Env, "CGO_ENABLED=1")
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build %v: %w\n%s", args, err, out)
	}
	return nil
}
