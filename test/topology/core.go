// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/cluster-chandler/chandler/test/gobuild"
	"github.com/cluster-chandler/chandler/test/process"
)

const clusterAPIModule = "sigs.k8s.io/cluster-api"

// coreTimeout is how long the core manager may take until it serves webhooks.
const coreTimeout = 90 * time.Second

// coreProgram is a built core manager.
type coreProgram struct {
	binary string
	config string // folder of its manifests
}

// provideCore builds the core manager that a module has as its only tool, once for each set of pins.
func provideCore(ctx context.Context, module string) (*coreProgram, error) {
	// Its manifests are beside the program, wherever a version of Cluster API has that.
	cmd := exec.CommandContext(ctx, "go", "list", "-f", "{{.ImportPath}} {{.Dir}} {{.Module.Version}}", "tool")
	cmd.Dir, cmd.Env = module, append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("finding the core manager of %s: %w\n%s", module, err, &stderr)
	}
	about := strings.Fields(string(out))
	if len(about) != 3 {
		return nil, fmt.Errorf("%s is to have one tool, it has: %s", module, out)
	}
	pkg, dir, version := about[0], about[1], about[2]
	pins := []string{filepath.Join(module, "go.mod"), filepath.Join(module, "go.sum")}
	binary, err := gobuild.Cached("capi", pins, func(path string) error {
		fmt.Fprintln(os.Stderr, "building Cluster API's core manager", version)
		return gobuild.Build(ctx, module, path, "-trimpath", "-ldflags", "-s -w -X "+clusterAPIModule+"/version.gitVersion="+version, pkg)
	})
	return &coreProgram{binary: binary, config: filepath.Join(dir, "config/default")}, err
}

// Core is Cluster API's core manager, as a process.
type Core struct {
	*process.Process // while it was started

	options  process.Options
	webhooks string // address
	ready    string // URL
}

// newCore prepares a core manager with the certificate that is in its home.
func newCore(binary, home, logDir string, kubeconfig []byte) (*Core, error) {
	file := filepath.Join(home, "kubeconfig")
	if err := os.WriteFile(file, kubeconfig, 0o600); err != nil {
		return nil, err
	}
	webhooks, err := process.FreeAddress()
	if err != nil {
		return nil, err
	}
	health, err := process.FreeAddress()
	if err != nil {
		return nil, err
	}
	_, port, err := net.SplitHostPort(webhooks)
	if err != nil {
		return nil, err
	}
	return &Core{
		webhooks: webhooks, ready: "http://" + health + "/readyz",
		options: process.Options{Name: "core manager", Binary: binary, Home: home, LogFile: filepath.Join(logDir, "core.log"), Args: []string{
			"--kubeconfig=" + file,
			"--feature-gates=ClusterTopology=true,RuntimeSDK=true",
			"--webhook-port=" + port,
			"--webhook-cert-dir=" + home,
			"--runtime-extension-client-cert-file=" + filepath.Join(home, "tls.crt"),
			"--runtime-extension-client-key-file=" + filepath.Join(home, "tls.key"),
			"--health-addr=" + health,
			"--diagnostics-address=127.0.0.1:0",
			"--insecure-diagnostics",
		}},
	}, nil
}

// Start starts the core manager, also after Kill, and returns when it serves webhooks.
func (c *Core) Start(ctx context.Context) error {
	var err error
	if c.Process, err = process.Start(c.options); err != nil {
		return err
	}
	last := err
	err = wait.PollUntilContextTimeout(ctx, 25*time.Millisecond, coreTimeout, true, func(ctx context.Context) (bool, error) {
		last = c.isReady(ctx)
		return last == nil, c.EndedByItself()
	})
	if err != nil {
		return fmt.Errorf("waiting for the core manager: %w: %w", err, last)
	}
	return nil
}

func (c *Core) isReady(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.ready, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s says %s", c.ready, response.Status)
	}
	return nil
}
