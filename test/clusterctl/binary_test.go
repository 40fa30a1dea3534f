// SPDX-License-Identifier: Apache-2.0

package clusterctl

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cluster-chandler/chandler/test/gobuild"
)

// pins is the folder of the module that says which clusterctl is built.
const pins = "hack/tools/clusterctl"

const (
	clusterAPIModule  = "sigs.k8s.io/cluster-api"
	clusterctlPackage = clusterAPIModule + "/cmd/clusterctl"
)

// commandTimeout is how long clusterctl may take: it tries again and again what fails.
const commandTimeout = 2 * time.Minute

// provideClusterctl returns the path of clusterctl, which is built once for each set of pins.
func provideClusterctl(ctx context.Context, progress io.Writer) (string, error) {
	module, sums := filepath.Join(world.root, pins, "go.mod"), filepath.Join(world.root, pins, "go.sum")
	return gobuild.Cached("clusterctl", []string{module, sums}, func(path string) error {
		version, err := clusterAPIVersion(ctx, "-modfile="+module)
		if err != nil {
			return err
		}
		fmt.Fprintln(progress, "building clusterctl", version)
		return gobuild.Build(ctx, world.root, path, "-modfile="+module, "-trimpath",
			"-ldflags", "-s -w -X "+clusterAPIModule+"/version.gitVersion="+version, clusterctlPackage)
	})
}

// clusterAPIVersion is the version of Cluster API that a go.mod pins; the checkout's own, without flags.
func clusterAPIVersion(ctx context.Context, flags ...string) (string, error) {
	return goTool(ctx, append(append([]string{"list"}, flags...), "-m", "-f", "{{.Version}}", clusterAPIModule)...)
}

func goTool(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = world.root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, &stderr)
	}
	return strings.TrimSpace(string(out)), nil
}

// clusterctl runs it as a user would, and returns what it prints and what it says beside that.
func clusterctl(t *testing.T, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), commandTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, world.clusterctl, append(args, "--config="+world.config)...)
	cmd.Dir = world.dir
	cmd.Env = []string{"HOME=" + world.dir, "XDG_CONFIG_HOME=" + world.dir, "PATH=" + os.Getenv("PATH"), "CLUSTERCTL_DISABLE_VERSIONCHECK=true"}
	for _, name := range []string{"ARGS", "VERBOSITY", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"} { // as a test sets them
		if value, ok := os.LookupEnv("CHANDLER_" + name); ok {
			cmd.Env = append(cmd.Env, "CHANDLER_"+name+"="+value)
		}
	}
	var out, log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &log
	start := time.Now()
	err = cmd.Run()
	t.Logf("clusterctl %s took %s", args[0], time.Since(start).Round(time.Millisecond))
	return out.String(), log.String(), err
}

// mustRun fails the test if clusterctl does.
func mustRun(t *testing.T, args ...string) string {
	t.Helper()
	out, log, err := clusterctl(t, args...)
	if err != nil {
		t.Fatalf("clusterctl %s: %v\n%s", strings.Join(args, " "), err, log)
	}
	return out
}

// The clusterctl that is tested with is of the version of Cluster API that the product is built with.
func TestVersion(t *testing.T) {
	g := NewWithT(t)
	wanted, err := clusterAPIVersion(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(mustRun(t, "version", "--output=short")).To(Equal(wanted + "\n"))
}
