// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/elastic/go-seccomp-bpf"

	"github.com/cluster-chandler/chandler/internal/manager"
	"github.com/cluster-chandler/chandler/test/must"
)

// withoutSeccomp has this test's program refuse itself seccomp, as some hosts of containers do.
const withoutSeccomp = "CHANDLER_TEST_WITHOUT_SECCOMP"

func TestSeccompIsRequired(t *testing.T) {
	if os.Getenv(withoutSeccomp) != "" {
		err := seccomp.LoadFilter(seccomp.Filter{NoNewPrivs: true, Flag: seccomp.FilterFlagTSync, Policy: seccomp.Policy{
			DefaultAction: seccomp.ActionAllow,
			Syscalls:      []seccomp.SyscallGroup{{Names: []string{"seccomp"}, Action: seccomp.ActionErrno}},
		}})
		must.Succeed(t, err)
		options, _, err := manager.Parse(strings.Fields(os.Getenv(withoutSeccomp)))
		must.Succeed(t, err)
		t.Log(manager.Run(t.Context(), options))
		return
	}
	for flags, says := range map[string]string{
		"--require-seccomp --webhook-port=0": "--require-seccomp: ",
		"--webhook-port=0":                   "finding the management cluster", // it went on
	} {
		again := exec.CommandContext(t.Context(), os.Args[0], "-test.v", "-test.run=^"+t.Name()+"$")
		again.Env = []string{withoutSeccomp + "=" + flags, "KUBECONFIG=/does/not/exist", "HOME=/"}
		if out, err := again.CombinedOutput(); err != nil || !strings.Contains(string(out), says) {
			t.Errorf("with %s: %v\n%s", flags, err, out)
		}
	}
}
