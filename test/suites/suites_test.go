// SPDX-License-Identifier: Apache-2.0

package suites_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// TestSuites runs each suite as it is in the module proxy's copy, with this folder's packages in place of the providers.
func TestSuites(t *testing.T) {
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		t.Skip("KUBEBUILDER_ASSETS names no kube-apiserver and etcd")
	}
	for suite, specs := range map[string]string{"kubeconfig": "11", "clusters": "2", "namespace": "7", "multi": "5", "file": "6", "cluster-inventory-api": "16"} {
		t.Run(suite, func(t *testing.T) {
			endWhatIsLeft(t)
			out := run(t, "go", "test", "-count=1", "-vet=off", "-timeout=10m", "-overlay="+overlay(t, suite), "-v", "./"+suite)
			ran := regexp.MustCompile(`Ran (\d+) of (\d+) Specs`).FindStringSubmatch(out)
			if ran == nil || ran[1] != specs || ran[2] != specs {
				t.Errorf("%v, not all of %s specs:\n%s", ran, specs, out)
			}
			t.Log(regexp.MustCompile(`Ran \d+ of .*`).FindString(out))
		})
	}
}

// folder returns the folder of a provider, in the released module that it is part of. It is skipped if the module proxy
// doesn't have that one. CHANDLER_MULTICLUSTER_RUNTIME may name a checkout.
func folder(t *testing.T, suite string) string {
	t.Helper()
	if checkout := os.Getenv("CHANDLER_MULTICLUSTER_RUNTIME"); checkout != "" {
		return filepath.Join(checkout, "providers", suite)
	}
	var module struct{ Dir, Version string }
	if err := json.Unmarshal([]byte(run(t, "go", "list", "-m", "-json", "sigs.k8s.io/multicluster-runtime")), &module); err != nil {
		t.Fatal(err)
	}
	own := "sigs.k8s.io/multicluster-runtime/providers/" + suite
	if path := filepath.Join(module.Dir, "providers", suite); exists(path) {
		return path
	}
	out, err := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", own+"@"+module.Version).Output()
	if err != nil {
		t.Skipf("%s %s can't be had: %s", own, module.Version, out)
	}
	if err := json.Unmarshal(out, &module); err != nil {
		t.Fatal(err)
	}
	return module.Dir
}

// endWhatIsLeft has a suite's temporary files in a folder of its own, and ends at last the processes that name that folder: control
// planes that the suite didn't end.
func endWhatIsLeft(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	t.Cleanup(func() {
		commands, _ := filepath.Glob("/proc/[0-9]*/cmdline")
		for _, path := range commands {
			command, _ := os.ReadFile(path) // a process that has ended has none
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			if strings.Contains(string(command), dir) && syscall.Kill(pid, syscall.SIGKILL) == nil {
				t.Logf("ended what the suite left: %s", filepath.Base(strings.Split(string(command), "\x00")[0]))
			}
		}
	})
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// overlay puts the test files of a provider into the folder of the package that takes its place, and has them import the packages
// below that one.
func overlay(t *testing.T, suite string) string {
	t.Helper()
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(folder(t, suite), "*_test.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no tests of %s: %v", suite, err)
	}
	replace, dir := map[string]string{}, t.TempDir()
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(file)
		text = bytes.ReplaceAll(text, []byte("sigs.k8s.io/multicluster-runtime/providers/"+suite+"/"), []byte("github.com/cluster-chandler/chandler/test/suites/"+suite+"/"))
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
		replace[filepath.Join(here, suite, name)] = filepath.Join(dir, name)
	}
	data, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// run returns what a command prints.
func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}
