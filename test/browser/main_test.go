// SPDX-License-Identifier: Apache-2.0

package browser_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/controlplane"
	"github.com/cluster-chandler/chandler/test/gobuild"
	"github.com/cluster-chandler/chandler/test/must"
)

// world is shared by all tests.
var world struct {
	chromium           string // "" if there is none
	plugin, kubeconfig string
	hub                client.Client
}

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}

func run(m *testing.M) (int, error) {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			world.chromium = path
		}
	}
	if world.chromium == "" {
		return m.Run(), nil // all are skipped
	}
	dir, err := os.MkdirTemp("", "chandler-browser-")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	world.plugin, world.kubeconfig = filepath.Join(dir, "kubectl-chandler"), filepath.Join(dir, "kubeconfig")
	if err := gobuild.Build(ctx, "../..", world.plugin, "./cmd/kubectl-chandler"); err != nil {
		return 1, err
	}
	module, err := exec.CommandContext(ctx, "go", "-C", "../..", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/cluster-api").Output()
	if err != nil {
		return 1, fmt.Errorf("finding Cluster API's CRDs: %w", err)
	}
	hub, err := controlplane.Start(ctx, controlplane.Options{Name: "management", CRDPaths: []string{
		"../../config/crd/bases", filepath.Join(string(bytes.TrimSpace(module)), "core/config/crd/bases/cluster.x-k8s.io_clusters.yaml")}})
	if err != nil {
		return 1, err
	}
	defer func() { _ = hub.Stop() }()
	if err := os.WriteFile(world.kubeconfig, hub.Kubeconfig(), 0o600); err != nil {
		return 1, err
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, clusterv1.AddToScheme, addonsv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return 1, err
		}
	}
	if world.hub, err = client.New(hub.Config(), client.Options{Scheme: scheme}); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

// serve runs `kubectl chandler ui`, and returns the address of its page, without a slash at the end.
func serve(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), world.plugin, append([]string{"ui"}, args...)...)
	cmd.Env, cmd.Stderr = append(os.Environ(), "KUBECONFIG="+world.kubeconfig), os.Stderr
	out, err := cmd.StdoutPipe()
	must.Succeed(t, err)
	must.Succeed(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Wait() }) // the test's context ends it
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	return strings.TrimSuffix(strings.TrimSpace(address), "/")
}
