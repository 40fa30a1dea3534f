// SPDX-License-Identifier: Apache-2.0

package quickstart

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cluster-chandler/chandler/test/controlplane"
	"github.com/cluster-chandler/chandler/test/docs"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/realdata"
)

const root = "../.."

// patience is how long a command may take on a busy machine.
const patience = 3 * time.Minute

// kubectl returns the program of the control planes' version.
func kubectl(t *testing.T) string {
	t.Helper()
	dir, err := controlplane.BinDir(t.Context(), os.Stderr, "kubectl")
	must.Succeed(t, err)
	return filepath.Join(dir, "kubectl")
}

// TestQuickStart does all that the page says, in its order, and compares what is printed with what the page shows.
func TestQuickStart(t *testing.T) {
	long.InCI(t)
	page, err := docs.Read(root, "docs/quick-start.md")
	must.Succeed(t, err)
	blocks, err := page.AllBlocks()
	must.Succeed(t, err)
	d := start(t, realdata.Path(t, "charts"), "prod-1")
	commands := 0
	for _, block := range blocks {
		if block.Language == "yaml" {
			d.write(block)
			continue
		}
		for _, command := range block.Commands() {
			commands++
			d.do(command)
		}
	}
	if commands < 20 {
		t.Errorf("the page has %d commands only", commands)
	}
}

// write saves a block under the name in its first line.
func (d *desk) write(block docs.Block) {
	d.t.Helper()
	first, _, _ := strings.Cut(block.Text, "\n")
	name, named := strings.CutPrefix(first, "# ")
	if !named || strings.ContainsAny(name, " /") {
		d.t.Fatalf("%s is to begin with the name of its file", block.Where)
	}
	d.save(name, d.fromHere.Replace(block.Text))
}

// do runs a command, or what stands for it here.
func (d *desk) do(command docs.Command) {
	d.t.Helper()
	line := strings.TrimSpace(command.Text)
	for begins, instead := range d.instead {
		if strings.HasPrefix(line, begins) {
			d.t.Logf("in the place of %s", line)
			instead()
			return
		}
	}
	if before, found := d.before[line]; found {
		before()
	}
	printed := d.asShown.Replace(d.run(line))
	if command.Output != "" {
		command.Compare(d.t, printed)
	}
}

// run runs a line in a shell, and returns what it prints.
func (d *desk) run(line string) string {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(d.t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", line)
	cmd.Dir = d.dir
	cmd.Env = append(os.Environ(), "KUBECONFIG="+d.file("management.kubeconfig"), "PATH="+d.dir+":"+filepath.Dir(d.kubectl)+":"+os.Getenv("PATH"))
	out := &bytes.Buffer{}
	cmd.Stdout, cmd.Stderr = out, out
	started := time.Now()
	if err := cmd.Run(); err != nil && !isVerdict(line, cmd.ProcessState.ExitCode()) {
		d.t.Fatalf("%s: %v\n%s\n%s", line, err, out, d.explain())
	}
	d.t.Logf("%4.1f s  %s\n%s", time.Since(started).Seconds(), line, out)
	return out.String()
}

// isVerdict reports whether the plugin says by an exit code how things are, and not that it failed.
func isVerdict(line string, code int) bool {
	return strings.HasPrefix(line, "kubectl chandler ") && (code == 1 || code == 2)
}

// TestKubectl has kubectl parse each of its command lines that the pages show.
func TestKubectl(t *testing.T) {
	long.InCI(t)
	program := kubectl(t)
	known := map[string]bool{}
	docs.EachProgram(t, root, func(_ string, shown docs.Command, words []string) {
		if words[0] != "kubectl" || words[1] == "chandler" || known[strings.Join(words, " ")] {
			return
		}
		known[strings.Join(words, " ")] = true
		if help, err := parse(t, program, words[1:]); err != nil {
			t.Errorf("%s: %s: %s", shown.Where, strings.TrimSpace(shown.Text), help)
		}
	})
	if len(known) < 40 {
		t.Errorf("found %d command lines only", len(known))
	}
	for line, isRight := range map[string]bool{"get pods -A": true, "get pods --everywhere": false, "gets pods": false, "create rolebinding x --clusterrol=y": false} {
		if help, err := parse(t, program, strings.Fields(line)); (err == nil) != isRight {
			t.Errorf("kubectl %s: %s", line, help)
		}
	}
}

// parse has kubectl look at a command line, and do nothing: flags are parsed before it shows help.
func parse(t *testing.T, program string, args []string) (said []byte, err error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, append(args, "--help")...)
	cmd.Env = append(os.Environ(), "KUBECONFIG=none")
	return cmd.CombinedOutput()
}
