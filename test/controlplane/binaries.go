// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// builder is the folder, in a checkout of this repository, of the command that builds the binaries.
const builder = "hack/controlplane"

// BinDir returns the directory of the named binaries, of all there are (those of a control plane with workers, and
// kubectl) if none is named. A name may have a version, as in kube-apiserver@v1.35.9. The directory is KUBEBUILDER_ASSETS
// if it has them, else a cache in which the missing ones are first built, with progress on out. If the context ends during a build, that continues by itself for the next call.
func BinDir(ctx context.Context, out io.Writer, names ...string) (string, error) {
	// Checked here as well as by the builder, for programs that run without a checkout.
	if assets := os.Getenv("KUBEBUILDER_ASSETS"); assets != "" && len(names) > 0 && hasAll(assets, names) {
		return assets, nil
	}
	root, err := checkout()
	if err != nil {
		return "", err
	}
	args := append([]string{"-C", filepath.Join(root, builder), "run", "."}, names...)
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Env = append(os.Environ(), "GOWORK=off")
	cmd.WaitDelay = time.Second // "go run" does not take its child with it
	cmd.Stderr = out
	dir, err := cmd.Output()
	if err != nil {
		if ctx.Err() != nil {
			err = ctx.Err() // "signal: killed" says nothing
		}
		return "", fmt.Errorf("building the control plane's binaries in %s: %w", builder, err)
	}
	return strings.TrimSpace(string(dir)), nil
}

// binaries that these options start.
func (o Options) binaries() []string {
	names := []string{"etcd", o.apiServer()}
	if o.Workers {
		names = append(names, "kube-controller-manager", "kube-scheduler", "kwok")
	}
	return names
}

// apiServer is the binary of the API server.
func (o Options) apiServer() string {
	if o.Version == "" {
		return "kube-apiserver"
	}
	return "kube-apiserver@" + o.Version
}

func hasAll(dir string, names []string) bool {
	return !slices.ContainsFunc(names, func(name string) bool { return !exists(filepath.Join(dir, name)) })
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// checkout finds the root of this repository: above the working directory, which for a test is its package's, or where
// this file was compiled.
func checkout() (string, error) {
	_, file, _, _ := runtime.Caller(0)
	wd, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for _, dir := range []string{wd, filepath.Dir(file)} {
		for ; ; dir = filepath.Dir(dir) {
			if exists(filepath.Join(dir, builder, "go.mod")) {
				return dir, nil
			}
			if dir == filepath.Dir(dir) {
				break
			}
		}
	}
	return "", errors.New("no control plane binaries: set KUBEBUILDER_ASSETS or run within a checkout of chandler")
}
