// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/cluster-chandler/chandler/test/controlplane"
)

// build provides the binaries: those of the control planes, once for each version of them, and the manager.
func (d *demo) build(ctx context.Context) error {
	var err error
	if d.root, err = goTool(ctx, "", "list", "-m", "-f", "{{.Dir}}"); err != nil {
		return fmt.Errorf("finding the checkout of chandler: %w", err)
	}
	if d.dir, err = os.MkdirTemp("", "chandler-demo-"); err != nil {
		return err
	}
	if d.guard, err = startGuard(d.dir); err != nil {
		return err
	}
	err = d.out.stage("control plane binaries", func(progress *progress) (string, error) {
		d.binDir, err = controlplane.BinDir(ctx, progress)
		if !progress.used {
			return "built before", err
		}
		return "built, and kept for the next time", err
	})
	if err != nil {
		return err
	}
	// Saves each control plane the look for its binaries.
	if err := os.Setenv("KUBEBUILDER_ASSETS", d.binDir); err != nil {
		return err
	}
	return d.out.stage("manager", func(progress *progress) (string, error) {
		return "built from this checkout", d.buildManager(ctx, progress)
	})
}

func (d *demo) buildManager(ctx context.Context, out io.Writer) error {
	cmd := goCommand(ctx, d.root, "build", "-o", d.managerBinary(), ".")
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("building the manager: %w", err)
	}
	return nil
}

func (d *demo) managerBinary() string { return filepath.Join(d.dir, "manager") }

// goTool returns what the go command prints.
func goTool(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := goCommand(ctx, dir, args...)
	out, err := cmd.Output()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		err = fmt.Errorf("go %s: %w: %s", args[0], err, strings.TrimSpace(string(failed.Stderr)))
	}
	return strings.TrimSpace(string(out)), err
}

func goCommand(ctx context.Context, dir string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0") // go.mod alone decides what is built, as in the image
	return cmd
}
