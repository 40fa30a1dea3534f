// SPDX-License-Identifier: Apache-2.0

// The controlplane command builds the binaries of a Kubernetes control plane from the versions that this folder's
// go.mod pins. It keeps them in the user's cache directory and prints the directory that holds them.
//
//	go -C hack/controlplane run . [binary[@version]...]
//
// Without arguments it provides every binary, of the pinned version. With another version, as in kube-apiserver@v1.35.9,
// the same code is linked as that version: it says so, and serves what that minor does. If KUBEBUILDER_ASSETS has the
// wanted ones, it prints that and builds nothing. Checkouts with the same pins share one directory, and any number of
// invocations may run at once.
package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

type program struct {
	binary, path string
	version      string // that it is linked as; by default the pinned one
}

// programs in the order they are built: the longest first, as the others share most of what it compiles.
var programs = []program{
	{binary: "kube-apiserver", path: "k8s.io/kubernetes/cmd/kube-apiserver"},
	{binary: "kube-controller-manager", path: "k8s.io/kubernetes/cmd/kube-controller-manager"},
	{binary: "kube-scheduler", path: "k8s.io/kubernetes/cmd/kube-scheduler"},
	{binary: "kubectl", path: "k8s.io/kubernetes/cmd/kubectl"},
	{binary: "etcd", path: "go.etcd.io/etcd/server/v3"},
	{binary: "kwok", path: "sigs.k8s.io/kwok/cmd/kwok"},
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	dir, err := provide(ctx, os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
	fmt.Println(dir)
}

// provide returns a directory that has the named binaries, or all if none is named.
func provide(ctx context.Context, names []string) (string, error) {
	wanted := programs
	if len(names) > 0 {
		if wanted = named(names); len(wanted) < len(names) {
			return "", fmt.Errorf("an unknown binary is among %q", names)
		}
	}
	if assets := os.Getenv("KUBEBUILDER_ASSETS"); assets != "" && len(missing(assets, wanted)) == 0 {
		return assets, nil
	}
	dir, err := cacheDir()
	if err != nil {
		return "", err
	}
	return dir, build(ctx, dir, wanted)
}

// named returns the programs of these names, in the order they are built.
func named(names []string) []program {
	var all []program
	for _, p := range programs {
		for _, name := range names {
			if binary, version, _ := strings.Cut(name, "@"); binary == p.binary {
				all = append(all, program{binary: name, path: p.path, version: version})
			}
		}
	}
	return all
}

// missing returns the programs whose binaries dir lacks.
func missing(dir string, wanted []program) []program {
	return slices.DeleteFunc(slices.Clone(wanted), func(p program) bool {
		_, err := os.Stat(filepath.Join(dir, p.binary))
		return err == nil
	})
}

// cacheDir is keyed by everything that decides what the binaries are: the pins, the link flags and the platform.
func cacheDir() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	io.WriteString(sum, ldflagsFormat)
	for _, name := range []string{"go.mod", "go.sum"} {
		content, err := os.ReadFile(name)
		if err != nil {
			return "", fmt.Errorf("run this from hack/controlplane: %w", err)
		}
		sum.Write(content)
	}
	key := fmt.Sprintf("%s-%s-%s", runtime.GOOS, runtime.GOARCH, hex.EncodeToString(sum.Sum(nil))[:16])
	return filepath.Join(cache, "chandler", "controlplane", key), nil
}

// build makes those binaries that are missing.
func build(ctx context.Context, dir string, wanted []program) error {
	if len(missing(dir, wanted)) == 0 {
		return nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	unlock, err := lock(filepath.Join(dir, ".lock"))
	if err != nil {
		return err
	}
	defer unlock()
	todo := missing(dir, wanted) // fewer, if another invocation held the lock
	pinned, err := pinnedVersion(ctx)
	if err != nil {
		return err
	}
	for i, p := range todo {
		fmt.Fprintf(os.Stderr, "[%d/%d] building %s\n", i+1, len(todo), p.binary)
		start := time.Now()
		if err := p.build(ctx, dir, cmp.Or(p.version, pinned)); err != nil {
			return fmt.Errorf("building %s: %w", p.binary, err)
		}
		fmt.Fprintf(os.Stderr, "[%d/%d] built %s in %.0f s\n", i+1, len(todo), p.binary, time.Since(start).Seconds())
	}
	return nil
}

// build renames the binary into place when it is complete, so that whatever stands in dir can be run.
func (p program) build(ctx context.Context, dir, version string) error {
	ldflags, err := linkFlags(version)
	if err != nil {
		return err
	}
	partial := filepath.Join(dir, "."+p.binary+".partial")
	defer os.Remove(partial)
	if err := goTool(ctx, os.Stderr, "build", "-trimpath", "-ldflags", ldflags, "-o", partial, p.path); err != nil {
		return err
	}
	return os.Rename(partial, filepath.Join(dir, p.binary))
}

// ldflagsFormat stamps the version; an unstamped server reports v0.0.0, which clients and Helm charts refuse.
const ldflagsFormat = "-s -w -X k8s.io/component-base/version.gitVersion=%s" +
	" -X k8s.io/component-base/version.gitMajor=%s -X k8s.io/component-base/version.gitMinor=%s"

func linkFlags(version string) (string, error) {
	part := strings.Split(strings.TrimPrefix(version, "v"), ".")
	if len(part) < 3 {
		return "", fmt.Errorf("%q is no version of Kubernetes", version)
	}
	return fmt.Sprintf(ldflagsFormat, version, part[0], part[1]), nil
}

// pinnedVersion returns the version of Kubernetes in go.mod.
func pinnedVersion(ctx context.Context) (string, error) {
	var out strings.Builder
	if err := goTool(ctx, &out, "list", "-m", "-f", "{{.Version}}", "k8s.io/kubernetes"); err != nil {
		return "", fmt.Errorf("reading the version of k8s.io/kubernetes: %w", err)
	}
	return strings.TrimSpace(out.String()), nil
}

func goTool(ctx context.Context, stdout io.Writer, args ...string) error {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	cmd.Stdout, cmd.Stderr = stdout, os.Stderr
	return cmd.Run()
}

// lock blocks until no other process holds the file's lock. The kernel frees it if this process dies.
func lock(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		fmt.Fprintln(os.Stderr, "waiting for another build of the same binaries")
		if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
			f.Close()
			return nil, fmt.Errorf("locking %s: %w", path, err)
		}
	}
	return func() { f.Close() }, nil
}
