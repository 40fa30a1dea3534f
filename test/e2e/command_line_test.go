// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"errors"
	"os/exec"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

func TestCommandLine(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		args []string
		says string
	}{
		"an unknown flag":               {args: []string{"--no-such-flag"}, says: "no-such-flag"},
		"an argument":                   {args: []string{"run"}, says: `"run"`},
		"a namespace that is none":      {args: []string{"--namespace=Team_A"}, says: "--namespace"},
		"a watch filter that is none":   {args: []string{"--watch-filter=a b"}, says: "--watch-filter"},
		"no worker":                     {args: []string{"--clusteraddon-concurrency=0"}, says: "--clusteraddon-concurrency"},
		"a missing artifact root":       {args: []string{"--artifact-root=/nowhere"}, says: "--artifact-root"},
		"a port that is none":           {args: []string{"--webhook-port=70000"}, says: "--webhook-port"},
		"an unknown TLS version":        {args: []string{"--tls-min-version=VersionTLS99"}, says: "VersionTLS99"},
		"too little memory to render":   {args: []string{"--render-memory-mib=1"}, says: "--render-memory-mib"},
		"a lease shorter than renewals": {args: []string{"--leader-elect", "--leader-elect-lease-duration=1s"}, says: "--leader-elect-lease-duration"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			stdout, stderr, code := runBinary(t, tc.args...)
			g.Expect(code).To(Equal(2), "wrong usage has exit code 2, so that scripts can tell it from a failure")
			g.Expect(stderr).To(ContainSubstring(tc.says), "the message is to name what is wrong")
			g.Expect(strings.Count(strings.TrimSuffix(stderr, "\n"), "\n")).To(BeZero(), "one line, not the list of all flags: %s", stderr)
			g.Expect(stdout).To(BeEmpty())
		})
	}
	t.Run("--version", func(t *testing.T) {
		g := NewWithT(t)
		stdout, stderr, code := runBinary(t, "--version")
		g.Expect(code).To(BeZero())
		g.Expect(stdout).To(HavePrefix("chandler "+testVersion), "the version is that of the build")
		g.Expect(stderr).To(BeEmpty())
	})
	t.Run("--help", func(t *testing.T) {
		g := NewWithT(t)
		stdout, stderr, code := runBinary(t, "--help")
		g.Expect(code).To(BeZero(), "asking for help is no mistake")
		for _, flag := range []string{"--namespace", "--watch-filter", "--leader-elect", "--artifact-root"} {
			g.Expect(stdout).To(ContainSubstring(flag))
		}
		g.Expect(stderr).To(BeEmpty())
	})
	t.Run("no management cluster", func(t *testing.T) {
		g := NewWithT(t)
		_, stderr, code := runBinary(t, "--webhook-port=0", "--health-addr=0")
		g.Expect(code).To(Equal(1), "this is a failure, not wrong usage: %s", stderr)
	})
	t.Run("another kubeconfig than that of the environment", func(t *testing.T) {
		g := NewWithT(t)
		_, stderr, code := runBinary(t, "--webhook-port=0", "--health-addr=0", "--kubeconfig=/nowhere-else")
		g.Expect(code).To(Equal(1))
		g.Expect(stderr).To(ContainSubstring("/nowhere-else"))
	})
}

// runBinary runs the manager in an empty environment until it ends.
func runBinary(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errOut bytes.Buffer
	cmd := exec.CommandContext(t.Context(), world.binary, args...)
	cmd.Env = []string{"HOME=" + t.TempDir(), "KUBECONFIG=/nowhere"}
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err := cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		t.Fatal(err)
	} else if ok {
		code = exit.ExitCode()
	}
	return out.String(), errOut.String(), code
}
