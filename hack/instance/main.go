// SPDX-License-Identifier: Apache-2.0

// This command writes the overlay of another instance of Chandler, from three answers:
// what it is called, which namespaces it looks after, and which objects there. What
// isn't given by a flag is asked for on a terminal. It builds what it wrote before it
// says that all is well.
//
//	go run ./hack/instance --name blue --namespaces team-a,team-b --filter blue --out ../fleet/blue
package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"
	"golang.org/x/term"
)

func main() {
	c := console{in: bufio.NewReader(os.Stdin), out: os.Stdout, terminal: term.IsTerminal(int(os.Stdin.Fd()))}
	switch err := run(os.Args[1:], c); {
	case errors.Is(err, pflag.ErrHelp):
	case err != nil:
		fmt.Fprintf(os.Stderr, "instance: %v\n", err)
		os.Exit(1)
	}
}

// console is where answers come from that no flag gives.
type console struct {
	in       *bufio.Reader
	out      io.Writer
	terminal bool
}

type options struct {
	answers
	namespaces string
	out        string
	base       string
	force      bool
}

func run(args []string, c console) error {
	o := &options{}
	fs := pflag.NewFlagSet("instance", pflag.ContinueOnError)
	fs.SetOutput(c.out)
	fs.StringVar(&o.Name, "name", "", "Name of the instance. It runs in namespace chandler-NAME.")
	fs.StringVar(&o.namespaces, "namespaces", "", "Namespaces that it looks after, with commas between; * is all.")
	fs.StringVar(&o.Filter, "filter", "", "Value of label cluster.x-k8s.io/watch-filter that objects must have. If empty, labels don't matter.")
	fs.StringVar(&o.out, "out", "", "Folder to write. Defaults to instances/NAME.")
	fs.StringVar(&o.base, "base", "", "Where config/instance is, as kustomize takes it: a folder, or github.com/cluster-chandler/chandler//config/instance?ref=v0.1.0. Defaults to the folder here.")
	fs.BoolVar(&o.force, "force", false, "Write over files that are there.")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if fs.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", fs.Arg(0))
	}
	if err := c.askFor(fs, o); err != nil {
		return err
	}
	o.Namespaces = split(o.namespaces)
	if err := o.validate(); err != nil {
		return err
	}
	if o.out == "" {
		o.out = filepath.Join("instances", o.Name)
	}
	objects, err := o.write()
	if err != nil {
		return err
	}
	fmt.Fprintf(c.out, "Wrote %s, which makes %d objects. It needs config/shared. Install it with\n\n  kustomize build %s | kubectl apply -f -\n", o.out, objects, o.out)
	return nil
}

// askFor asks for the answers that no flag gives.
func (c console) askFor(fs *pflag.FlagSet, o *options) error {
	for _, question := range []struct {
		flag, text string
		answer     *string
		optional   bool
	}{
		{flag: "name", text: "Name of the instance", answer: &o.Name},
		{flag: "namespaces", text: "Namespaces that it looks after, with commas between (* for all)", answer: &o.namespaces},
		{flag: "filter", text: "Value of label cluster.x-k8s.io/watch-filter that objects must have (none: labels don't matter)", answer: &o.Filter, optional: true},
	} {
		if fs.Changed(question.flag) {
			continue
		}
		if !c.terminal {
			if question.optional {
				continue
			}
			return fmt.Errorf("--%s is missing", question.flag)
		}
		fmt.Fprintf(c.out, "%s: ", question.text)
		line, err := c.in.ReadString('\n')
		if err != nil {
			return fmt.Errorf("reading an answer: %w", err)
		}
		*question.answer = trim(line)
	}
	return nil
}
