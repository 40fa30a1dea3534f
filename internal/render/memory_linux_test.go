// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"fmt"
	"os"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cluster-chandler/chandler/internal/render/sandbox"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/rendering"
)

func TestProtectMemory(t *testing.T) {
	before, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
	must.Succeed(t, err)
	defer func() { _ = unix.Prctl(unix.PR_SET_DUMPABLE, uintptr(before), 0, 0, 0) }()
	must.Succeed(t, sandbox.ProtectMemory())
	if now, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0); err != nil || now != 0 {
		t.Errorf("dumpable is %d, %v", now, err)
	}
}

// The kernel shows a process whose memory is protected as root's.
func TestWorkersMemoryIsProtected(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("all processes are root's")
	}
	r := rendering.NewRenderer(t)
	mustRender(t, r)
	info, err := os.Stat(fmt.Sprintf("/proc/%d/environ", r.PIDs()[0]))
	must.Succeed(t, err)
	must.Equal(t, 0, info.Sys().(*syscall.Stat_t).Uid, "its owner")
}
