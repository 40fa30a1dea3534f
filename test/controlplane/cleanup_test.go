// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cluster-chandler/chandler/test/controlplane"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/must"
)

// helperEnv makes this test binary start a control plane, say so, and wait to be killed.
const helperEnv = "CONTROLPLANE_TEST_HELPER"

func TestMain(m *testing.M) {
	if os.Getenv(helperEnv) != "" {
		c, err := controlplane.Start(context.Background(), controlplane.Options{Workers: true})
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println("started")
		time.Sleep(time.Hour)
		runtime.KeepAlive(c) // what is garbage has its pipe to the watchdog closed, as at the end of this process
	}
	os.Exit(m.Run())
}

// scratch is where control planes put what they store. As its name is on the command line of each of their processes,
// those can be found by it.
func scratch(t *testing.T) string {
	t.Helper()
	if _, err := os.Stat("/proc/self/cmdline"); err != nil {
		t.Skip("processes are found in /proc")
	}
	dir, err := os.MkdirTemp("", "cleanup-")
	must.Succeed(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	t.Setenv("GOTMPDIR", os.TempDir()) // go run, which says where the components are, leaves its own if it is killed
	t.Setenv("TMPDIR", dir)
	return dir
}

// processes returns the command lines that name the directory.
func processes(dir string) []string {
	var found []string
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		line, _ := os.ReadFile(file) // fails if the process has just ended
		if bytes.Contains(line, []byte(dir)) {
			found = append(found, string(bytes.ReplaceAll(line, []byte{0}, []byte{' '})))
		}
	}
	return found
}

func expectNothingLeft(t *testing.T, dir string) {
	t.Helper()
	g := NewWithT(t)
	g.Eventually(func() []string { return processes(dir) }).WithTimeout(10 * time.Second).Should(BeEmpty())
	g.Expect(os.ReadDir(dir)).To(BeEmpty())
}

func TestStopLeavesNothing(t *testing.T) {
	long.Test(t)
	g := NewWithT(t)
	dir := scratch(t)
	c, err := controlplane.Start(t.Context(), controlplane.Options{Workers: true})
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(func() []string { return processes(dir) }).WithTimeout(patience).Should(HaveLen(6)) // with the watchdog
	g.Expect(c.PauseAPIServer()).To(Succeed())
	g.Expect(c.Stop()).To(Succeed())
	expectNothingLeft(t, dir)
	g.Expect(c.Stop()).To(Succeed(), "again")
	g.Expect(c.StartAPIServer(t.Context())).NotTo(Succeed())
}

func TestFailedStartLeavesNothing(t *testing.T) {
	long.Test(t)
	for name, test := range map[string]struct {
		options controlplane.Options
		want    []string
	}{
		"a component that ends": {
			options: controlplane.Options{Name: "broken", ExtraAPIServerArgs: []string{"--no-such-flag"}},
			want:    []string{`control plane "broken"`, "kube-apiserver ended: exit status 1", "unknown flag: --no-such-flag"},
		},
		"a later step": {
			options: controlplane.Options{CRDPaths: []string{"/no/such/path"}},
			want:    []string{"installing CRDs", "/no/such/path"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			dir := scratch(t)
			_, err := controlplane.Start(t.Context(), test.options)
			for _, want := range test.want {
				g.Expect(err).To(MatchError(ContainSubstring(want)))
			}
			expectNothingLeft(t, dir)
		})
	}

	t.Run("one of several", func(t *testing.T) {
		dir := scratch(t)
		_, err := controlplane.StartAll(t.Context(),
			controlplane.Options{Name: "good"},
			controlplane.Options{Name: "bad", ExtraAPIServerArgs: []string{"--no-such-flag"}})
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring(`control plane "bad"`)))
		expectNothingLeft(t, dir)
	})

	for name, after := range map[string]time.Duration{
		"a context that ends":         500 * time.Millisecond,
		"a context that ends at once": 20 * time.Millisecond,
	} {
		t.Run(name, func(t *testing.T) {
			dir := scratch(t)
			ctx, cancel := context.WithTimeout(t.Context(), after)
			defer cancel()
			_, err := controlplane.Start(ctx, controlplane.Options{})
			NewWithT(t).Expect(err).To(MatchError(context.DeadlineExceeded))
			expectNothingLeft(t, dir)
		})
	}
}

func TestDeathOfTheParentLeavesNothing(t *testing.T) {
	long.Test(t)
	for name, test := range map[string]struct {
		signal      syscall.Signal
		whileStarts bool
	}{
		"killed":                {signal: syscall.SIGKILL},
		"killed while starting": {signal: syscall.SIGKILL, whileStarts: true},
		"interrupted":           {signal: syscall.SIGINT},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			dir := scratch(t)
			helper := exec.Command(os.Args[0])
			helper.Env = append(os.Environ(), helperEnv+"=1")
			helper.Stderr = os.Stderr
			stdout, err := helper.StdoutPipe()
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(helper.Start()).To(Succeed())
			if test.whileStarts {
				g.Eventually(func() string { return strings.Join(processes(dir), "\n") }).
					WithTimeout(patience).WithPolling(time.Millisecond).Should(ContainSubstring("etcd"))
			} else {
				line, err := bufio.NewReader(stdout).ReadString('\n')
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(line).To(Equal("started\n"))
				g.Eventually(func() []string { return processes(dir) }).WithTimeout(patience).Should(HaveLen(6))
			}
			g.Expect(helper.Process.Signal(test.signal)).To(Succeed())
			g.Expect(helper.Wait()).NotTo(Succeed())
			expectNothingLeft(t, dir)
		})
	}
}
