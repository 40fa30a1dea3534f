// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cluster-chandler/chandler/internal/render"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/rendering"
)

const orphanEnv = "CHANDLER_TEST_ORPHAN"

// runOrphanIfAsked is the program of TestNoWorkerOutlivesItsParent: a parent with a busy worker.
func runOrphanIfAsked() {
	if os.Getenv(orphanEnv) == "" {
		return
	}
	r := render.New(render.Options{Workers: 1, Timeout: time.Minute})
	go func() { _, _ = r.Chart(context.Background(), rendering.ChartJob(rendering.ChartWith(endless))) }()
	for range 200 {
		time.Sleep(20 * time.Millisecond)
		for _, pid := range r.PIDs() {
			fmt.Println(pid)
		}
	}
}

func TestNoWorkerOutlivesItsParent(t *testing.T) {
	exe, err := os.Executable()
	must.Succeed(t, err)
	parent := exec.Command(exe)
	parent.Env = append(os.Environ(), orphanEnv+"=1")
	out, err := parent.StdoutPipe()
	must.Succeed(t, err)
	must.Succeed(t, parent.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	must.Succeed(t, err)
	worker, err := strconv.Atoi(strings.TrimSpace(line))
	must.Succeed(t, err)
	time.Sleep(300 * time.Millisecond) // into the endless template
	must.Succeed(t, parent.Process.Signal(syscall.SIGKILL))
	_ = parent.Wait()
	for range 100 {
		if !processRuns(worker) {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Errorf("worker %d still runs", worker)
}

// processRuns is false for a zombie that nobody has reaped yet.
func processRuns(pid int) bool {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(status), ") Z ")
}
