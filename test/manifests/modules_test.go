// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cluster-chandler/chandler/test/long"
)

// TestReleasedModules tags a copy of the repository as docs/development.md says, and then does with it what users do: they install
// the plugin, and list what their module requires.
func TestReleasedModules(t *testing.T) {
	long.Test(t)
	dir := t.TempDir()
	copied, origin := filepath.Join(dir, "copy"), filepath.Join(dir, "origin")
	const module = "github.com/cluster-chandler/chandler"
	released := fmt.Sprintf("v0.1.%d", time.Now().Unix()) // another one each time, as Go keeps modules by their versions
	env := append(os.Environ(), "GOPRIVATE="+module+","+module+"/fleet", "GOFLAGS=-modcacherw", "GOBIN="+filepath.Join(dir, "bin"),
		"GIT_CONFIG_COUNT=3", "GIT_CONFIG_KEY_0=url."+origin+".insteadOf", "GIT_CONFIG_VALUE_0=https://"+module,
		"GIT_CONFIG_KEY_1=user.name", "GIT_CONFIG_VALUE_1=releaser", "GIT_CONFIG_KEY_2=user.email", "GIT_CONFIG_VALUE_2=releaser@example.org")
	run := func(in string, command ...string) string {
		t.Helper()
		cmd := exec.Command(command[0], command[1:]...)
		cmd.Dir, cmd.Env = in, env
		out, err := cmd.CombinedOutput()
		NewWithT(t).Expect(err).NotTo(HaveOccurred(), "%v: %s", command, out)
		return string(out)
	}
	t.Cleanup(func() {
		kept := strings.TrimSpace(run(root, "go", "env", "GOMODCACHE"))
		for _, in := range []string{kept, filepath.Join(kept, "cache", "download")} {
			_ = os.RemoveAll(filepath.Join(in, filepath.Dir(module)))
		}
	})
	run(root, "git", "clone", "--quiet", "--bare", ".", origin)
	run(root, "git", "clone", "--quiet", origin, copied)
	run(copied, "git", "tag", "fleet/"+released)
	run(copied, "git", "push", "--quiet", "origin", "fleet/"+released)
	run(copied, "make", "release-modules", "VERSION="+released)
	run(copied, "git", "commit", "--quiet", "--all", "--message", "Release "+released)
	run(copied, "git", "tag", released)
	run(copied, "git", "push", "--quiet", "origin", released)

	run(dir, "go", "install", module+"/cmd/kubectl-chandler@"+released)
	NewWithT(t).Expect(run(dir, filepath.Join(dir, "bin", "kubectl-chandler"), "version", "--client")).To(ContainSubstring(released))
	importer := filepath.Join(dir, "importer")
	NewWithT(t).Expect(os.Mkdir(importer, 0o755)).To(Succeed())
	run(importer, "go", "mod", "init", "example.org/importer")
	run(importer, "go", "get", module+"/fleet@"+released)
	NewWithT(t).Expect(run(importer, "go", "list", "-m", "all")).To(ContainSubstring(module + "/fleet " + released))
}
