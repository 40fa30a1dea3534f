// SPDX-License-Identifier: Apache-2.0

package command_test

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/cluster-chandler/chandler/cmd/kubectl-chandler/internal/command"
	"github.com/cluster-chandler/chandler/test/must"
)

// run returns what a command line writes, and its exit code. No cluster is asked.
func run(t *testing.T, args ...string) (string, int) {
	t.Helper()
	t.Setenv("KUBECONFIG", "none")
	out := &bytes.Buffer{}
	code := command.Run(t.Context(), genericiooptions.IOStreams{Out: out, ErrOut: out}, args)
	return out.String(), code
}

var inHelp = regexp.MustCompile(`(?m)^  ([a-z]+) `)

// TestCommandsOfThePage compares the page of the plugin with the commands that there are.
func TestCommandsOfThePage(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/kubectl-chandler.md")
	must.Succeed(t, err)
	found := 0
	for _, group := range []string{"", "get", "rollout"} {
		args := append(strings.Fields(group), "--help")
		help, code := run(t, args...)
		if code != 0 {
			t.Fatal(help)
		}
		commands, _, _ := strings.Cut(help, "\nFlags:")
		for _, match := range inHelp.FindAllStringSubmatch(commands, -1) {
			name := strings.TrimSpace(group + " " + match[1])
			if name == "help" || name == "get" || name == "rollout" || match[1] == "kubectl" {
				continue
			}
			found++
			own, _ := run(t, append(strings.Fields(name), "--help")...)
			if name != "completion" && !strings.Contains(own, "\nExamples:\n  kubectl chandler "+name) || strings.Contains(own, "--as-group") {
				t.Errorf("help of %s has no example, or kubectl's own flags: %s", name, own)
			}
			if !regexp.MustCompile("(?m)^\\|[^|]*`" + name + "[ `]").Match(page) {
				t.Errorf("docs/kubectl-chandler.md has no row for %s", name)
			}
		}
	}
	if found < 20 {
		t.Errorf("found %d commands only", found)
	}
}

func TestWrongUse(t *testing.T) {
	for _, args := range [][]string{
		{"nothing"}, {"why"}, {"tree", "a", "b"}, {"rollout", "reject", "platform"}, {"status", "--nothing"}, {"status"}, {"pause", "addon/x"},
		{"rollout", "foo"}, {"get", "foo", "bar"}, {"pause", "--all", "platform"}, {"pause"},
		{"pause", "\x1b[2J/x", "--server", "http://127.0.0.1"},
	} {
		if out, code := run(t, args...); code != 3 || !strings.HasPrefix(out, "Error: ") || strings.Contains(out, "\x1b") {
			t.Errorf("%v: exit code %d: %s", args, code, out)
		}
	}
}
